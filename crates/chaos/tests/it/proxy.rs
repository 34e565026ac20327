//! The proxy that cuts connections, with a real server behind it.

mod needs_postgres {
    use crate::ALONE_WITH_THE_SERVER;
    use outlast_chaos::proxy::{Cut, Proxy};
    use tokio::sync::MutexGuard;
    use tokio_postgres::{Client, Config, NoTls};

    /// More than any other request here.
    const LARGE: usize = 4_000;

    struct World {
        /// Nobody stops the server meanwhile.
        _alone: MutexGuard<'static, ()>,
        proxy: Proxy,
        /// How clients get to the server, through the proxy.
        config: Config,
        /// Does not go through the proxy.
        witness: Client,
    }

    impl World {
        /// With an empty table of this name.
        async fn new(table: &str) -> Self {
            let url = std::env::var("OUTLAST_TEST_POSTGRES_URL").expect(
                "OUTLAST_TEST_POSTGRES_URL names no server: `cargo xtask postgres -- cargo test -p outlast-chaos` has one",
            );
            let direct: Config = url.parse().unwrap();
            let _alone = ALONE_WITH_THE_SERVER.lock().await;
            let witness = connect(&direct).await.unwrap();
            let sql = format!("DROP TABLE IF EXISTS {table}; CREATE TABLE {table} (number int, text text)");
            witness.batch_execute(&sql).await.unwrap();
            let server = format!("127.0.0.1:{}", direct.get_ports()[0]).parse().unwrap();
            let proxy = Proxy::start(server).await.unwrap();
            let mut config = Config::new();
            config.host("127.0.0.1").port(proxy.address().port()).dbname(direct.get_dbname().unwrap());
            config.user(direct.get_user().unwrap()).password(direct.get_password().unwrap());
            Self { _alone, proxy, config, witness }
        }

        async fn count(&self, table: &str) -> i64 {
            self.witness.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await.unwrap().get(0)
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
    async fn a_commit_is_cut_where_it_was_said() {
        let table = "proxy_cut_where_it_was_said";
        let world = World::new(table).await;
        let mut stored = 0;
        for (cut, is_stored) in [(Cut::Before, 0), (Cut::Within, 0), (Cut::After, 1)] {
            let client = connect(&world.config).await.unwrap();
            let cuts = world.proxy.cuts();
            world.proxy.aim(cut, LARGE);
            let error = insert(&client, table).await.unwrap_err();
            assert!(error.code().is_none(), "{cut:?}: the server said something: {error}");
            assert_eq!(world.proxy.cuts(), cuts + 1, "{cut:?}");
            stored += is_stored;
            assert_eq!(world.count(table).await, stored, "{cut:?}");
        }
        // Nobody aims any more.
        let client = connect(&world.config).await.unwrap();
        assert_eq!(insert(&client, table).await.unwrap(), 1);
        assert_eq!(world.count(table).await, stored + 1);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn all_connections_are_cut_and_new_ones_let_through() {
        let world = World::new("proxy_all_are_cut").await;
        let clients = [connect(&world.config).await.unwrap(), connect(&world.config).await.unwrap()];
        for client in &clients {
            client.batch_execute("SELECT 1").await.unwrap();
        }
        world.proxy.sever();
        for client in &clients {
            client.batch_execute("SELECT 1").await.unwrap_err();
        }
        let client = connect(&world.config).await.unwrap();
        client.batch_execute("SELECT 1").await.unwrap();
    }
}
