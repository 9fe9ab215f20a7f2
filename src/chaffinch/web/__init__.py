"""The service: requests in, one library call, its result out; on this computer, unless TLS files are given."""
