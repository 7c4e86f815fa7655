-- Nobody may do what came since but the owner; and each tenant what the functions that were made anew take.
REVOKE ALL ON ALL TABLES IN SCHEMA triage FROM PUBLIC;
REVOKE ALL ON ALL SEQUENCES IN SCHEMA triage FROM PUBLIC;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA triage FROM PUBLIC;
GRANT EXECUTE ON FUNCTION triage.own_namespace() TO PUBLIC;
SELECT triage.admit_tenant(t.role, t.namespace, NULL, false, NULL)
FROM triage.tenants t JOIN pg_roles r ON r.rolname = t.role;
