// Times messages of m x n doubles out of a 4096 x z matrix into another rank's: the shapes, n = 1 and 16, of Miyabe et
// al., "Implementation and Evaluation of Mechanisms for MPI Derived Datatypes Communication on DIMMnet-2".
// The library for unchanged MPI programs takes over calls by their MPI_ names. So the PMPI_ names are the MPI alone,
// and all ways of sending take turns in one run. A line a shape, medians of rank 0 in µs:
// * read, write: to load, and to store, one double of each line that the sub-matrix lies in, the only things a message
//   cannot do without. Both sides may work at the same time, so the longer of the two is the floor of a message. Lines
//   that are stored to are fetched first, as are all lines of which a message writes a part.
// * MPI, library, by hand: a message one way. By hand it is packed and unpacked by loops, and sent by the MPI alone.
// * loop: a loop of the program's, after no message, and after one there and one back in each way. It updates an array
//   of three quarters of the second cache that was there before the message. What it takes longer is the pollution of
//   the cache.
#include <mpi.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "typed.hpp"

namespace {

constexpr int kRows = 4096, kColumns = 4096;  // the widest of the matrices; narrower ones lie in its memory
constexpr std::size_t kLine = 64, kLineDoubles = kLine / sizeof(double);

struct Shape {
  int m, n, z;
  std::size_t lines() const {  // of one side: each row begins where a line does
    return static_cast<std::size_t>(m) * ((static_cast<std::size_t>(n) + kLineDoubles - 1) / kLineDoubles);
  }
};

struct Way {
  std::function<void()> send, receive;
};

std::size_t cache(int name, std::size_t otherwise) {
  const long said = sysconf(name);
  return said > 0 ? static_cast<std::size_t>(said) : otherwise;
}

class Program {  // what the program does beside its messages
 public:
  explicit Program(bool cold)
      : own_(cache(_SC_LEVEL2_CACHE_SIZE, 1 << 20) / 4 * 3 / sizeof(std::uint64_t), 1),
        other_(cold ? cache(_SC_LEVEL3_CACHE_SIZE, 64 << 20) / 8 * 9 / sizeof(std::uint64_t) : 0, 1) {}
  /// No vectors: Open MPI 5.0 leaves the upper halves of AVX's registers in use, in which SSE's arithmetic takes 1.7 x
  /// as long. That is not the cache's.
  void loop() {
    for (volatile std::uint64_t& value : own_) value = value * 3 + 1;
  }
  /// A store to each line, and no memset: for a range of this size that would go past the caches.
  void overwrite_caches() {
    for (std::size_t i = 0; i < other_.size(); i += kLine / sizeof(std::uint64_t)) other_[i] += 1;
  }

 private:
  std::vector<std::uint64_t> own_, other_;
};

struct Free {
  void operator()(double* memory) const { std::free(memory); }
};
using Matrix = std::unique_ptr<double, Free>;

// Filled, so that each page is there: pages that were never written are all one page of zeros.
Matrix matrix() {
  const std::size_t size = std::size_t{kRows} * kColumns;
  Matrix made(static_cast<double*>(std::aligned_alloc(kLine, size * sizeof(double))));
  std::fill_n(made.get(), size, 1.0);
  return made;
}

// n is known when this is compiled: the best that someone who packs by hand may hope for.
template <int n>
void pack(const double* from, const Shape& shape, double* flat) {
  for (std::ptrdiff_t i = 0; i < shape.m; ++i) std::memcpy(flat + i * n, from + i * shape.z, n * sizeof(double));
}
template <int n>
void unpack(const double* flat, const Shape& shape, double* to) {
  for (std::ptrdiff_t i = 0; i < shape.m; ++i) std::memcpy(to + i * shape.z, flat + i * n, n * sizeof(double));
}

void read_lines(const volatile double* from, const Shape& shape) {
  for (std::ptrdiff_t i = 0; i < shape.m; ++i)
    for (std::size_t j = 0; j < static_cast<std::size_t>(shape.n); j += kLineDoubles)
      static_cast<void>(from[i * shape.z + static_cast<std::ptrdiff_t>(j)]);
}
void write_lines(volatile double* to, const Shape& shape) {
  for (std::ptrdiff_t i = 0; i < shape.m; ++i)
    for (std::size_t j = 0; j < static_cast<std::size_t>(shape.n); j += kLineDoubles)
      to[i * shape.z + static_cast<std::ptrdiff_t>(j)] = 2;
}

double us(const std::function<void()>& work) {
  const double start = MPI_Wtime();
  work();
  return (MPI_Wtime() - start) * 1e6;
}

void time_shape(int rank, bool cold, Program& program, const Shape& shape, double* sent, double* received) {
  const int other = 1 - rank, doubles = shape.m * shape.n;
  std::vector<double> out(static_cast<std::size_t>(doubles)), in(out);
  MPI_Datatype type;
  MPI_Type_vector(shape.m, shape.n, shape.z, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  MPI_Comm alone;  // the library counts the messages of a communicator: it sees none of this one's
  MPI_Comm_dup(MPI_COMM_WORLD, &alone);
  const auto pack_n = shape.n == 1 ? pack<1> : pack<16>;
  const auto unpack_n = shape.n == 1 ? unpack<1> : unpack<16>;
  const std::array<Way, 3> ways = {
      Way{[&] { PMPI_Send(sent, 1, type, other, 0, alone); },
          [&] { PMPI_Recv(received, 1, type, other, 0, alone, MPI_STATUS_IGNORE); }},
      Way{[&] { MPI_Send(sent, 1, type, other, 0, MPI_COMM_WORLD); },
          [&] { MPI_Recv(received, 1, type, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }},
      Way{[&] {
            pack_n(sent, shape, out.data());
            PMPI_Send(out.data(), doubles, MPI_DOUBLE, other, 0, alone);
          },
          [&] {
            PMPI_Recv(in.data(), doubles, MPI_DOUBLE, other, 0, alone, MPI_STATUS_IGNORE);
            unpack_n(in.data(), shape, received);
          }}};
  const auto there_and_back = [&](const Way& way) {
    rank == 0 ? way.send() : way.receive();
    rank == 0 ? way.receive() : way.send();
  };
  const auto read = [&] { read_lines(sent, shape); };
  const auto write = [&] { write_lines(received, shape); };
  const auto loop = [&] { program.loop(); };
  const auto prepare = [&](const std::function<void()>& touch_lines) {
    if (cold)
      program.overwrite_caches();
    else
      touch_lines();
    loop();
    loop();  // caches do not keep all that is used once
    MPI_Barrier(MPI_COMM_WORLD);
    // The other rank is to have posted its receive, as it has when a program's ranks keep pace.
    if (const double start = MPI_Wtime(); rank == 0)
      while (MPI_Wtime() - start < 10e-6) continue;
  };
  std::vector<double> reads, writes, loops;
  std::array<std::vector<double>, 3> messages, loops_after;
  // The first messages of a type are slow in every way, and the library sees what each of its ways takes.
  for (int i = 0; i < 50; ++i)
    for (const Way& way : ways) there_and_back(way);
  for (int round = 0; round < (cold ? 15 : 101); ++round) {
    prepare([&] { read(), write(); });
    loops.push_back(us(loop));
    reads.push_back(us(read));
    writes.push_back(us(write));
    for (std::size_t i = 0; i < ways.size(); ++i) {
      prepare([&] { there_and_back(ways[i]); });
      messages[i].push_back(us([&] { there_and_back(ways[i]); }) / 2);
      loops_after[i].push_back(us(loop));
    }
  }
  if (rank == 0) {
    std::printf("%5d %3d %5d %7zu %6zu %9.2f %9.2f", shape.m, shape.n, shape.z, out.size() * sizeof(double),
                2 * shape.lines(), median(reads), median(writes));
    for (const std::vector<double>& times : messages) std::printf(" %9.2f", median(times));
    std::printf(" %9.2f", median(loops));
    for (const std::vector<double>& times : loops_after) std::printf(" %9.2f", median(times));
    std::printf("\n");
    std::fflush(stdout);
  }
  MPI_Comm_free(&alone);
  MPI_Type_free(&type);
}

}  // namespace

void submatrices(int rank, bool cold) {
  if (rank == 0) {
    std::printf("%5s %3s %5s %7s %6s", "m", "n", "z", "bytes", "lines");
    for (const char* name : {"read µs", "write", "MPI", "library", "by hand", "loop", "MPI", "library", "by hand"})
      std::printf(" %9s", name);
    std::printf("\n");
  }
  Program program(cold);
  // A message there and one back are of two matrices, so that what the first has touched serves neither.
  const Matrix sent = matrix(), received = matrix();
  for (const int n : {1, 16}) {
    for (const int m : {128, 1024, kRows})
      time_shape(rank, cold, program, {m, n, kColumns}, sent.get(), received.get());
    time_shape(rank, cold, program, {kRows, n, 256}, sent.get(), received.get());
  }
}
