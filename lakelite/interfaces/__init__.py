"""What people hold: the DB-API, the command line and its prompt. Everything here is imported only when it is used."""
