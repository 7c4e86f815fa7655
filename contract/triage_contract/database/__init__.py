"""The database: engine, schema, migrations, and the fence. The only package that imports the driver."""
