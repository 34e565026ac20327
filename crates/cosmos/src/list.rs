//! Lists of instances.

use crate::delete::NEWEST;
use crate::document::{Address, Instance};
use crate::error::refused;
use crate::ids::Uid;
use crate::sql;
use crate::store::Store;
use outlast_provider::{InstanceFilter, InstanceInfo, InstancePage, InstanceQuery, ProviderError};
use outlast_provider_kit::listing::BUDGET;
use serde::Deserialize;

/// An instance of a list of ids.
#[derive(Deserialize)]
pub(crate) struct Listed {
    #[serde(rename = "instanceId")]
    partition: String,
    #[serde(default)]
    iid: Option<String>,
    /// The record of a deletion.
    #[serde(rename = "del", default)]
    deleted_by: Option<Uid>,
}

impl Store {
    /// Ids of instances, newest first.
    pub(crate) async fn ids(
        &self,
        operation: &str,
        status: Option<&str>,
    ) -> Result<Vec<String>, ProviderError> {
        let found: Vec<Listed> = match status {
            None => self.client.query_all(operation, sql::INSTANCE_IDS, &[], usize::MAX).await?,
            Some(status) => {
                let parameters = [("@status", status.into())];
                self.client.query_all(operation, sql::INSTANCE_IDS_BY_STATUS, &parameters, usize::MAX).await?
            }
        };
        self.listed(operation, found).await
    }

    /// The ids of instances, without those whose deletion is committed. Their documents may still be there.
    pub(crate) async fn listed(
        &self,
        operation: &str,
        found: Vec<Listed>,
    ) -> Result<Vec<String>, ProviderError> {
        let mut ids = Vec::new();
        for listed in found {
            let Some(address) = Address::of_document(&listed.partition, listed.iid.as_deref()) else {
                continue;
            };
            if listed.deleted_by.is_none() || self.read_listed(operation, &address).await?.is_some() {
                ids.push(address.id);
            }
        }
        Ok(ids)
    }

    /// The instances of a query, without those whose deletion is committed.
    pub(crate) async fn alive(
        &self,
        operation: &str,
        found: Vec<Instance>,
    ) -> Result<Vec<Instance>, ProviderError> {
        let mut alive = Vec::new();
        for instance in found {
            match (instance.deleted_by, instance.address()) {
                (Some(_), Some(address)) => {
                    let read = self.read_listed(operation, &address).await?;
                    alive.extend(read.map(|read| read.document));
                }
                _ => alive.push(instance),
            }
        }
        Ok(alive)
    }

    pub(crate) async fn info(
        &self,
        operation: &str,
        address: &Address,
        instance: &Instance,
    ) -> Result<Option<InstanceInfo>, ProviderError> {
        let Some(row) = &instance.row else { return Ok(None) };
        let execution = self.execution(operation, address, instance, row.current).await?;
        Ok(Some(InstanceInfo {
            instance_id: address.id.clone(),
            orchestration_name: row.name.clone(),
            orchestration_version: row.version.clone(),
            current_execution_id: row.current,
            status: instance.st.clone().unwrap_or_else(|| "Unknown".to_string()),
            output: execution.and_then(|execution| execution.output),
            created_at: row.created_at,
            updated_at: row.updated_at,
            parent_instance_id: instance.par.clone(),
        }))
    }

    /// One page of instances, newest first.
    pub(crate) async fn page(&self, query: &InstanceQuery) -> Result<InstancePage, ProviderError> {
        const PAGE: &str = "query_instances";
        let before = match &query.after {
            None => NEWEST,
            Some(after) => position(after).ok_or_else(|| {
                refused(
                    PAGE,
                    format!("page position '{after}' is not one of ours: start from the first page"),
                )
            })?,
        };
        let mut page = InstancePage::default();
        let size = query.page_size();
        // One more than the page has shows whether there is a next one.
        let examined = match outlast_provider_kit::listing::is_filtered(query) {
            true => BUDGET as usize,
            false => size + 1,
        };
        let parameters = [("@before", before.into())];
        let found: Vec<Instance> = self.client.query_all(PAGE, sql::INSTANCES, &parameters, examined).await?;
        let is_cut = found.len() == examined;
        let end = found.last().and_then(|instance| instance.ct);
        let found = self.alive(PAGE, found).await?;
        let mut last = None;
        for instance in found {
            if page.instances.len() == size {
                page.next = last.map(|last: u64| last.to_string());
                return Ok(page);
            }
            let Some(address) = instance.address() else { continue };
            if let Some(info) = self.info(PAGE, &address, &instance).await?
                && query.matches(&info)
            {
                page.instances.push(info);
            }
            last = instance.ct;
        }
        if is_cut {
            page.next = end.map(|end| end.to_string());
        }
        Ok(page)
    }

    /// Instances that a bulk filter selects, oldest first.
    pub(crate) async fn bulk(
        &self,
        operation: &str,
        filter: &InstanceFilter,
    ) -> Result<Vec<Instance>, ProviderError> {
        let parameters = [("@before", NEWEST.into())];
        let mut found: Vec<Instance> = match &filter.instance_ids {
            None => self.client.query_all(operation, sql::INSTANCES, &parameters, usize::MAX).await?,
            Some(ids) => {
                let mut found = Vec::new();
                for id in ids.iter().collect::<std::collections::BTreeSet<_>>() {
                    let read = self.read_instance(operation, &Address::of(id)).await?;
                    found.extend(read.map(|read| read.document));
                }
                found
            }
        };
        found = self.alive(operation, found).await?;
        found.retain(|instance| {
            let ended = instance.row.as_ref().and_then(|row| row.completed_at);
            instance.row.is_some()
                && filter.completed_before.is_none_or(|before| ended.is_some_and(|at| at < before))
        });
        found.sort_by_key(|instance| instance.ct);
        Ok(found)
    }
}

/// Reads a page position, which must have exactly the form that a page returns.
fn position(text: &str) -> Option<u64> {
    text.parse()
        .ok()
        .filter(|position: &u64| *position > 0 && *position <= NEWEST && position.to_string() == text)
}
