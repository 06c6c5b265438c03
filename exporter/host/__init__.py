"""The host's part: processes that hold a GPU, pressure, RDMA."""
