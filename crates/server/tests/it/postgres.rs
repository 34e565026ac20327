//! The server on a PostgreSQL store.

mod needs_postgres {
    use crate::kit::{Server, operating, with_tokens};
    use crate::{client, history, keyed, metrics, operate, operations, pages, queues, stream};
    use outlast_server::Options;

    #[tokio::test(flavor = "multi_thread")]
    async fn postgres_store_is_shown() {
        let server = Server::on_postgres(Options::default()).await;
        history::answers_of_a_waiting_order(&server).await;
        server.stop().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn every_screen_answers_on_postgres() {
        let server = Server::on_postgres(operating()).await;
        pages::screens(&server).await;
        server.stop().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn items_and_tags_of_a_postgres_store_are_read() {
        let server = Server::on_postgres(Options::default()).await;
        queues::queue_activities(&*server.provider).await;
        queues::client_reads_what_the_store_has(&server, &server.store).await;
        server.stop().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn client_controls_an_order_on_postgres() {
        let server = Server::on_postgres(operating()).await;
        client::life_of_an_order(&server).await;
        server.stop().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn receipts_of_starts_are_those_of_the_client_of_postgres() {
        let server = Server::on_postgres(operating()).await;
        client::receipts_of_starts(&server).await;
        server.stop().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn resets_and_forks_are_those_of_the_client_of_postgres() {
        let server = Server::on_postgres(operating()).await;
        client::resets_and_forks(&server).await;
        server.stop().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn holds_are_those_of_the_client_of_postgres() {
        let server = Server::on_postgres(operating()).await;
        client::holds(&server).await;
        server.stop().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn reads_are_those_of_the_client_of_postgres() {
        let server = Server::on_postgres(operating()).await;
        client::reads(&server).await;
        server.stop().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn repeated_deliveries_have_no_effect_on_postgres() {
        let server = Server::on_postgres(operating()).await;
        keyed::repeated_deliveries(&server).await;
        keyed::cloud_events(&server).await;
        server.stop().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn changes_are_recorded_on_postgres() {
        let server = Server::on_postgres(with_tokens(operating())).await;
        operate::records_of_changes(&server).await;
        server.stop().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn figures_of_postgres_are_shown() {
        let server = Server::on_postgres(operating()).await;
        metrics::figures(&server).await;
        server.stop().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn one_stream_reports_several_instances_of_postgres() {
        let server = Server::on_postgres(operating()).await;
        stream::hints_of_several_instances(&server).await;
        server.stop().await;
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn operations_change_the_instances_of_the_dry_run_on_postgres() {
        let server = Server::on_postgres(operating()).await;
        operations::changes_of_the_dry_run(&server).await;
        server.stop().await;
    }
}
