//! The proxy cuts connections to a real server.

mod needs_postgres {
    use crate::SERVER_LOCK;
    use outlast_chaos::proxy::{Cut, Proxy};
    use tokio::sync::MutexGuard;
    use tokio_postgres::{Client, Config, NoTls};

    /// Larger than any other request here.
    const LARGE: usize = 4_000;

    struct ProxiedDatabase {
        /// No other test stops the server meanwhile.
        _lock: MutexGuard<'static, ()>,
        proxy: Proxy,
        /// Configuration of clients that connect through the proxy.
        config: Config,
        /// A client that does not use the proxy.
        direct_client: Client,
    }

    impl ProxiedDatabase {
        /// Creates an empty table of this name.
        async fn new(table: &str) -> Self {
            let url = std::env::var("OUTLAST_TEST_POSTGRES_URL").expect(
                "OUTLAST_TEST_POSTGRES_URL names no server: `cargo xtask postgres -- cargo test -p outlast-chaos` has one",
            );
            let direct: Config = url.parse().unwrap();
            let _lock = SERVER_LOCK.lock().await;
            let direct_client = connect(&direct).await.unwrap();
            let sql = format!("DROP TABLE IF EXISTS {table}; CREATE TABLE {table} (number int, text text)");
            direct_client.batch_execute(&sql).await.unwrap();
            let server = format!("127.0.0.1:{}", direct.get_ports()[0]).parse().unwrap();
            let proxy = Proxy::start(server).await.unwrap();
            let mut config = Config::new();
            config.host("127.0.0.1").port(proxy.address().port()).dbname(direct.get_dbname().unwrap());
            config.user(direct.get_user().unwrap()).password(direct.get_password().unwrap());
            Self { _lock, proxy, config, direct_client }
        }

        async fn count(&self, table: &str) -> i64 {
            self.direct_client.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await.unwrap().get(0)
        }
    }

    async fn connect(config: &Config) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = config.connect(NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    async fn insert(client: &Client, table: &str) -> Result<u64, tokio_postgres::Error> {
        let statement = client.prepare(&format!("INSERT INTO {table} VALUES (1, $1)")).await?;
        client.execute(&statement, &[&"x".repeat(LARGE)]).await
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_commit_is_cut_at_the_requested_point() {
        let table = "proxy_cut_where_it_was_said";
        let setup = ProxiedDatabase::new(table).await;
        let mut stored = 0;
        for (cut, is_stored) in [(Cut::Before, 0), (Cut::Within, 0), (Cut::After, 1)] {
            let client = connect(&setup.config).await.unwrap();
            let cuts = setup.proxy.cuts();
            setup.proxy.cut_at(cut, LARGE);
            let error = insert(&client, table).await.unwrap_err();
            assert!(error.code().is_none(), "{cut:?}: the server sent an error: {error}");
            assert_eq!(setup.proxy.cuts(), cuts + 1, "{cut:?}");
            stored += is_stored;
            assert_eq!(setup.count(table).await, stored, "{cut:?}");
        }
        // No action is pending any more.
        let client = connect(&setup.config).await.unwrap();
        assert_eq!(insert(&client, table).await.unwrap(), 1);
        assert_eq!(setup.count(table).await, stored + 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn sever_cuts_all_connections_and_forwards_new_ones() {
        let setup = ProxiedDatabase::new("proxy_all_are_cut").await;
        let clients = [connect(&setup.config).await.unwrap(), connect(&setup.config).await.unwrap()];
        for client in &clients {
            client.batch_execute("SELECT 1").await.unwrap();
        }
        setup.proxy.sever();
        for client in &clients {
            client.batch_execute("SELECT 1").await.unwrap_err();
        }
        let client = connect(&setup.config).await.unwrap();
        client.batch_execute("SELECT 1").await.unwrap();
    }
}
