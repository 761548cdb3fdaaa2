"""Nothing on a CPU, whose ranks send by MPI or queues; ``peer.cu`` is for GPUs that reach one another's memory."""
GPU_ONLY = ("send", "receive", "add_received", "add_received_dot", "add_up")
