// Random datatypes sent between two ranks in a program of MPI alone: sent by one random type and received by another of
// the same signature, which has as much room, more (so that the message ends anywhere in it) or too little. Each rank
// writes what it saw to a file, so that two runs can be compared. Open MPI 5.0 moves some wrong bytes where a fragment
// of a message ends within an element: there the run without the library writes what it should have seen, and large
// messages are posted, so that with the library they go through the ring.
//   mpi_trees FILE [MESSAGES [SEED]]
#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "random_types.hpp"
#include "tasuki/datatype.hpp"
#include "tasuki/error.hpp"

namespace {

using random_types::below;
using random_types::between;
using random_types::Random;

constexpr std::int64_t kLargest = 1 << 18;  // bytes of a message, and of what it lies in

int rank;

/// Elements of a random type that consists of integers.
struct Data {
  struct Memory {
    std::vector<unsigned char> bytes;
    std::byte* base = nullptr;
    Memory() = default;
    explicit Memory(const tasuki::Layout& of)
        : bytes(static_cast<std::size_t>(of.true_upper_bound() - of.true_lower_bound()) + 2, 0x5a),
          base(reinterpret_cast<std::byte*>(bytes.data()) + 1 - of.true_lower_bound()) {}
    std::uint64_t sum() const {
      std::uint64_t all = 14695981039346656037u;
      for (const unsigned char one : bytes) all = (all ^ one) * 1099511628211u;
      return all;
    }
  };
  random_types::Tree tree;
  tasuki::Layout layout;
  int count = 0;
  std::int64_t ints = 0;
  Memory memory;

  explicit Data(Random& random) {
    do {
      tree.free();
      tree = random_types::random_tree(random, between(random, 1, 4), true);
    } while (!tree.derived);
    MPI_Type_commit(&tree.type);
    layout = tasuki::from_mpi(tree.type);
  }
  Data(const Data&) = delete;
  ~Data() { tree.free(); }

  std::int64_t each() const { return layout.size() / 4; }
  bool take(int elements) {
    count = elements;
    ints = each() * elements;
    if (ints * 4 > kLargest || std::abs(layout.extent()) * elements > kLargest) return false;
    layout = tasuki::Layout::contiguous(elements, layout);
    if (layout.true_upper_bound() - layout.true_lower_bound() > 2 * kLargest) return false;
    memory = Memory(layout);
    return true;
  }
};

/// What MPI's standard says that `to` then is.
std::uint64_t expected(const Data& from, const Data& to) {
  std::vector<std::byte> packed(static_cast<std::size_t>(to.ints) * 4);
  Data::Memory memory{to.layout};
  to.layout.pack(memory.base, packed.data());
  from.layout.pack(from.memory.base, packed.data());
  to.layout.unpack(packed.data(), memory.base);
  return memory.sum();
}

int class_of(int status) {
  int kind = MPI_SUCCESS;
  MPI_Error_class(status, &kind);
  return kind;
}

/// False if the two types are too large, or MPI forbids them.
bool exchange(Random& random, std::FILE* out, long number) {
  Data from(random), to(random);
  if (from.each() == 0 || to.each() == 0) return false;
  const bool large = below(random, 3) == 0;  // enough to be sent in pieces
  const auto wanted = large ? between(random, 600, 20000) : between(random, 1, 300);
  if (!from.take(static_cast<int>((wanted + from.each() - 1) / from.each()))) return false;
    // 0: too little room, to which Open MPI does not keep for some types.
#ifdef OPEN_MPI
  const int fit = between(random, 1, 7);
#else
  const int fit = below(random, 8);
#endif
  const std::int64_t room = fit == 0 ? from.ints - 1 : from.ints + (fit > 4 ? below(random, 50) : 0);
  const std::int64_t count = fit == 0 ? room / to.each() : (room + to.each() - 1) / to.each();
  if (count == 0 || !to.take(static_cast<int>(count)) || to.layout.overlaps()) return false;
  for (unsigned char& one : from.memory.bytes) one = static_cast<unsigned char>(random());
  bool posted = below(random, 3) > 0;
  bool judged = true;
#ifdef OPEN_MPI
  posted = posted || large;
  judged = std::getenv("LD_PRELOAD") != nullptr;
#endif
  const int way = below(random, 4), tag = below(random, 3);
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 0) {
    if (posted) MPI_Barrier(MPI_COMM_WORLD);
    const auto call = [&](auto function) {
      function(from.memory.base, from.count, from.tree.type, 1, tag, MPI_COMM_WORLD, &request);
    };
    if (way == 0)
      MPI_Send(from.memory.base, from.count, from.tree.type, 1, tag, MPI_COMM_WORLD);
    else if (way == 1)
      MPI_Ssend(from.memory.base, from.count, from.tree.type, 1, tag, MPI_COMM_WORLD);
    else if (way == 2)
      call(MPI_Isend);
    else
      call(MPI_Issend);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    std::fprintf(out, "%ld sent %016llx\n", number, static_cast<unsigned long long>(from.memory.sum()));
    return true;
  }
  MPI_Status status;
  int result = 0;
  if (posted) {
    MPI_Irecv(to.memory.base, to.count, to.tree.type, 0, tag, MPI_COMM_WORLD, &request);
    MPI_Barrier(MPI_COMM_WORLD);
    result = MPI_Wait(&request, &status);
  } else {
    result = MPI_Recv(to.memory.base, to.count, to.tree.type, 0, tag, MPI_COMM_WORLD, &status);
  }
  // What is written by a message that is too long is not said by MPI.
  int elements = -1, whole = -1;
  if (result == MPI_SUCCESS) {
    MPI_Get_elements(&status, MPI_INT, &elements);  // of a type with an empty part, MPICH gives up
    MPI_Get_count(&status, to.tree.type, &whole);
  }
  std::uint64_t sum = 0;
  if (result == MPI_SUCCESS) sum = judged ? to.memory.sum() : expected(from, to);
  std::fprintf(out, "%ld class %d elements %d count %d sum %016llx: %s\n", number, class_of(result), elements, whole,
               static_cast<unsigned long long>(sum), to.tree.text.c_str());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (argc < 2 || ranks != 2) return 2;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  std::FILE* out = std::fopen((std::string(argv[1]) + "." + std::to_string(rank)).c_str(), "w");
  if (out == nullptr) return 2;
  random_types::of_ints_alone = true;
  const long wanted = argc > 2 ? std::atol(argv[2]) : 1000;
  Random random(argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1);  // the same on both ranks
  // So that the ranks know of each other.
  std::vector<double> some(2000, rank);
  MPI_Datatype apart;
  MPI_Type_vector(500, 1, 2, MPI_DOUBLE, &apart);
  MPI_Type_commit(&apart);
  MPI_Sendrecv(some.data(), 1, apart, 1 - rank, 9, some.data() + 1000, 1, apart, 1 - rank, 9, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Type_free(&apart);
  long done = 0;
  for (long i = 0; done < wanted; ++i) done += exchange(random, out, i);
  std::fclose(out);
  return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
