"""A program of mpi4py alone: halos of a matrix by sub-array types, persistent, non-blocking and in one collective call.

`halo.py FILE` writes what each rank has at last to FILE.<rank>.
"""

import sys

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
dims = MPI.Compute_dims(world.size, 2)
cart = world.Create_cart(dims, periods=[True, True])
rank = cart.rank
rows, columns = 37, 53
u = np.random.default_rng(rank).random((rows + 2, columns + 2))


def face(rows_from: int, rows_number: int, columns_from: int, columns_number: int) -> MPI.Datatype:
    return MPI.DOUBLE.Create_subarray(
        u.shape, [rows_number, columns_number], [rows_from, columns_from], order=MPI.ORDER_C
    ).Commit()


up, down = cart.Shift(0, 1)
left, right = cart.Shift(1, 1)
# (neighbour, what it is sent, what comes from the one on the other side)
moves = [
    (down, face(rows, 1, 1, columns), up, face(0, 1, 1, columns)),
    (up, face(1, 1, 1, columns), down, face(rows + 1, 1, 1, columns)),
    (right, face(1, rows, columns, 1), left, face(1, rows, 0, 1)),
    (left, face(1, rows, 1, 1), right, face(1, rows, columns + 1, 1)),
]


def step() -> None:
    u[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])


for turn in range(4):
    requests = []
    for tag, (to, sent, source, received) in enumerate(moves):
        requests.append(cart.Irecv([u, 1, received], source, tag))
        requests.append((cart.Isend if turn % 2 else cart.Issend)([u, 1, sent], to, tag))
    MPI.Request.Waitall(requests)
    step()

for to, sent, source, received in moves:
    status = MPI.Status()
    cart.Sendrecv([u, 1, sent], to, 7, [u, 1, received], source, 7, status)
    assert status.Get_count(received) == 1 and status.Get_elements(MPI.DOUBLE) in (rows, columns)
step()

persistent = []
for tag, (to, sent, source, received) in enumerate(moves):
    persistent.append(cart.Recv_init([u, 1, received], source, tag))
    persistent.append(cart.Send_init([u, 1, sent], to, tag))
for _ in range(4):
    MPI.Prequest.Startall(persistent)
    MPI.Request.Waitall(persistent)
    step()
for request in persistent:
    request.Free()

# In the order of a Cartesian communicator's neighbours: up, down, left, right.
sends = [moves[1][1], moves[0][1], moves[3][1], moves[2][1]]
receives = [moves[0][3], moves[1][3], moves[2][3], moves[3][3]]
ones, zeros = [1] * 4, [0] * 4
for _ in range(3):
    cart.Neighbor_alltoallw([u, ones, zeros, sends], [u, ones, zeros, receives])
    step()

# A transpose, as that of a Fourier transform: blocks of columns against blocks of rows.
n = world.size * 6
a = np.random.default_rng(100 + rank).random((6, n))
b = np.zeros((n, 6))
of_a = [MPI.DOUBLE.Create_subarray([6, n], [6, 6], [0, 6 * r]).Commit() for r in range(world.size)]
of_b = [MPI.DOUBLE.Create_subarray([n, 6], [6, 6], [6 * r, 0]).Commit() for r in range(world.size)]
some, none = [1] * world.size, [0] * world.size
world.Alltoallw([a, some, none, of_a], [b, some, none, of_b])

packed = bytearray(moves[2][1].Pack_size(1, cart))
end = moves[2][1].Pack(u, packed, 0, cart)
copy = np.zeros_like(u)
moves[2][1].Unpack(packed, 0, copy, cart)
with open(f"{sys.argv[1]}.{world.rank}", "wb") as out:
    out.write(u.tobytes() + b.tobytes() + copy.tobytes() + bytes(packed[:end]) + f" {end}".encode())
