// The calls that are taken over, and how many arguments each has: TASUKI_MPI_CALLS(X) is X(name, arguments) for each.
// All arguments are integers, handles or addresses.
#pragma once

#define TASUKI_MPI_COMPLETIONS(X) \
  X(Wait, 2)                      \
  X(Waitall, 3)                   \
  X(Waitany, 4)                   \
  X(Waitsome, 5)                  \
  X(Test, 3)                      \
  X(Testall, 4)                   \
  X(Testany, 5)                   \
  X(Testsome, 5)                  \
  X(Request_free, 1)              \
  X(Request_get_status, 3)        \
  X(Start, 1)                     \
  X(Startall, 2)

#define TASUKI_MPI_CALLS(X)         \
  X(Init, 2)                        \
  X(Init_thread, 4)                 \
  X(Finalize, 0)                    \
  X(Send, 6)                        \
  X(Ssend, 6)                       \
  X(Rsend, 6)                       \
  X(Bsend, 6)                       \
  X(Recv, 7)                        \
  X(Mrecv, 5)                       \
  X(Sendrecv, 12)                   \
  X(Sendrecv_replace, 9)            \
  X(Isend, 7)                       \
  X(Issend, 7)                      \
  X(Irsend, 7)                      \
  X(Ibsend, 7)                      \
  X(Irecv, 7)                       \
  X(Imrecv, 5)                      \
  X(Send_init, 7)                   \
  X(Ssend_init, 7)                  \
  X(Rsend_init, 7)                  \
  X(Bsend_init, 7)                  \
  X(Recv_init, 7)                   \
  X(Pack, 7)                        \
  X(Unpack, 7)                      \
  X(Alltoallw, 9)                   \
  X(Neighbor_alltoallw, 9)          \
  X(Ialltoallw, 10)                 \
  X(Ineighbor_alltoallw, 10)        \
  X(Mprobe, 5)                      \
  X(Improbe, 6)                     \
  X(Cancel, 1)                      \
  X(Comm_dup, 2)                    \
  X(Comm_dup_with_info, 3)          \
  X(Comm_split, 4)                  \
  X(Comm_split_type, 5)             \
  X(Comm_create, 3)                 \
  X(Cart_create, 6)                 \
  X(Cart_sub, 3)                    \
  X(Graph_create, 6)                \
  X(Dist_graph_create, 9)           \
  X(Dist_graph_create_adjacent, 10) \
  TASUKI_MPI_COMPLETIONS(X)

// Those that an MPI has only from version 4 on, most of them with large counts: X(name, arguments) for MPI_name.
#define TASUKI_MPI_LARGE_CALLS(X)  \
  X(Send_c, 6)                     \
  X(Ssend_c, 6)                    \
  X(Rsend_c, 6)                    \
  X(Bsend_c, 6)                    \
  X(Recv_c, 7)                     \
  X(Mrecv_c, 5)                    \
  X(Sendrecv_c, 12)                \
  X(Sendrecv_replace_c, 9)         \
  X(Isend_c, 7)                    \
  X(Issend_c, 7)                   \
  X(Irsend_c, 7)                   \
  X(Ibsend_c, 7)                   \
  X(Irecv_c, 7)                    \
  X(Imrecv_c, 5)                   \
  X(Send_init_c, 7)                \
  X(Ssend_init_c, 7)               \
  X(Rsend_init_c, 7)               \
  X(Bsend_init_c, 7)               \
  X(Recv_init_c, 7)                \
  X(Pack_c, 7)                     \
  X(Unpack_c, 7)                   \
  X(Alltoallw_c, 9)                \
  X(Neighbor_alltoallw_c, 9)       \
  X(Ialltoallw_c, 10)              \
  X(Ineighbor_alltoallw_c, 10)     \
  X(Alltoallw_init, 11)            \
  X(Neighbor_alltoallw_init, 11)   \
  X(Alltoallw_init_c, 11)          \
  X(Neighbor_alltoallw_init_c, 11) \
  X(Isendrecv, 13)                 \
  X(Isendrecv_c, 13)               \
  X(Isendrecv_replace, 10)         \
  X(Isendrecv_replace_c, 10)       \
  X(Request_get_status_all, 4)     \
  X(Request_get_status_any, 5)     \
  X(Request_get_status_some, 5)
