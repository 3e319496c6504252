"""How much work does a pool's load mean? Requests and tokens into shares of one replica's time."""
