UPDATE executions
SET duroxide_version_major = ?3, duroxide_version_minor = ?4, duroxide_version_patch = ?5, duroxide_version_pre = ?6
WHERE instance_id = ?1 AND execution_id = ?2
