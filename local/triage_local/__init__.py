"""A local cluster without Docker: API server emulator, process kubelet, Postgres, scripted model, demo."""
