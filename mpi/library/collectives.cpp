// Alltoallw and Neighbor_alltoallw, whose blocks each go from one rank to one rank: in shared memory, once all ranks of
// the communicator have agreed to that (exchange.hpp); else packed blocks take the place of typed ones, on each rank as
// it is faster there. Other collectives may cut a message by its type, which all ranks must
// then do alike, and are left to MPI.
#include <climits>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "exchange.hpp"
#include "hook.hpp"
#include "typed.hpp"

namespace {

using namespace tasuki::mpi;

// One side's blocks, at absolute addresses.
class Absolute {
 public:
  template <class Count>
  Absolute(const char* name, const void* caller, const std::vector<int>& peers, const void* buffer,
           const Count* how_many, const MPI_Aint* displacements, const MPI_Datatype* given) {
    typed_.reserve(peers.size());
    for (std::size_t i = 0; i < peers.size(); ++i) {
      const auto* at = reinterpret_cast<const void*>(reinterpret_cast<MPI_Aint>(buffer) + displacements[i]);
      Typed& one = typed_.emplace_back(name, caller, at, how_many[i], given[i], peers[i] < 0);
      one.choose();
      one.note();
      changed_ = changed_ || one.changed();
      fits_ = fits_ && how_many[i] <= INT_MAX;
      counts.push_back(one.count());
      addresses.push_back(reinterpret_cast<MPI_Aint>(one.buffer()));
      types.push_back(one.type());
    }
  }
  bool changed() const { return changed_; }
  bool fits() const { return fits_; }
  void pack() const {
    for (const Typed& one : typed_)
      if (one.packed()) one.pack();
  }
  void unpack() const {
    for (const Typed& one : typed_)
      if (one.packed()) one.unpack_all();
  }

  std::vector<int> counts;
  std::vector<MPI_Aint> addresses;
  std::vector<MPI_Datatype> types;

 private:
  std::vector<Typed> typed_;
  bool changed_ = false, fits_ = true;
};

template <class Count>
std::span<const Count> view(const Count* first, std::size_t count) {
  return {first, count};
}

template <class Count, class At>
std::vector<Whole> wholes(const void* buffer, std::span<const Count> counts, std::span<const At> at,
                          const MPI_Datatype* types) {
  std::vector<Whole> all(counts.size());
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = {reinterpret_cast<void*>(reinterpret_cast<MPI_Aint>(buffer) + static_cast<MPI_Aint>(at[i])), counts[i],
              types[i]};
  return all;
}

template <class Original, class Count>
int neighbor_alltoallw(const char* name, const void* caller, Original original, const void* out,
                       const Count* out_counts, const MPI_Aint* out_at, const MPI_Datatype* out_types, void* in,
                       const Count* in_counts, const MPI_Aint* in_at, const MPI_Datatype* in_types, MPI_Comm comm) {
  const auto by_mpi = [&] {
    return original(out, out_counts, out_at, out_types, in, in_counts, in_at, in_types, comm);
  };
  if (!session_runs() || comm == MPI_COMM_NULL) return by_mpi();
  Exchange* exchange = exchange_of(comm, Exchange::Kind::neighbours);
  const std::optional<Peers> found = exchange == nullptr ? neighbours_of(comm) : std::nullopt;
  if (exchange == nullptr && !found) return by_mpi();
  const Peers& peers = exchange != nullptr ? exchange->peers() : *found;
  const std::size_t targets = peers.targets.size(), sources = peers.sources.size();
  if (exchange != nullptr) {
    const std::vector<Whole> sends = wholes(out, view(out_counts, targets), view(out_at, targets), out_types);
    const std::vector<Whole> receives = wholes(in, view(in_counts, sources), view(in_at, sources), in_types);
    if (!sound(sends) || !sound(receives)) return by_mpi();
    if (exchange->enter()) return exchange->run(name, caller, sends, receives);
  }
  const Absolute sent(name, caller, peers.targets, out, out_counts, out_at, out_types);
  const Absolute received(name, caller, peers.sources, in, in_counts, in_at, in_types);
  if ((!sent.changed() && !received.changed()) || !sent.fits() || !received.fits()) return by_mpi();
  sent.pack();
  const int result =
      PMPI_Neighbor_alltoallw(MPI_BOTTOM, sent.counts.data(), sent.addresses.data(), sent.types.data(), MPI_BOTTOM,
                              received.counts.data(), received.addresses.data(), received.types.data(), comm);
  if (result == MPI_SUCCESS) received.unpack();
  return result;
}

// One side's blocks, packed one after the other: MPI_Alltoallw's displacements are 32-bit numbers from one base.
class Joined {
 public:
  template <class Count, class At>
  Joined(const char* name, const void* caller, const void* buffer, std::span<const Count> how_many,
         std::span<const At> places, std::span<const MPI_Datatype> given)
      : buffer_(const_cast<std::byte*>(static_cast<const std::byte*>(buffer))) {
    std::int64_t all = 0;
    for (std::size_t i = 0; i < how_many.size(); ++i) {
      const Type& type = type_of(given[i]);
      Part part{nullptr, static_cast<std::int64_t>(places[i]), all, 0};
      if (!type.plain && how_many[i] > 0) {
        part.what = counted(type, how_many[i]);
        possible_ = possible_ && in_host_memory(*part.what, buffer_ + places[i]);
        packs_ = packs_ || (possible_ && route_of(*part.what, buffer_ + places[i], given[i]) == Route::packed);
        part.bytes = part.what->bytes();
      } else if (how_many[i] > 0) {
        int size = 0;
        possible_ = possible_ && type.unknown.empty() && given[i] != MPI_DATATYPE_NULL;
        if (possible_) PMPI_Type_size(given[i], &size);
        part.bytes = static_cast<std::int64_t>(size) * how_many[i];
      }
      all += part.bytes;
      parts_.push_back(std::move(part));
    }
    possible_ = possible_ && all <= INT_MAX;
    if (!packs_ || !possible_) return;
    joined_ = Scratch(all);
    possible_ = static_cast<bool>(joined_);
    for (const Part& part : parts_) {
      counts.push_back(static_cast<int>(part.bytes));
      at.push_back(static_cast<int>(part.to));
      types.push_back(MPI_PACKED);
      if (part.what != nullptr) note(name, caller, *part.what, Route::packed);
    }
  }
  bool packs() const { return packs_; }
  bool possible() const { return possible_; }
  std::byte* data() const { return joined_.data(); }
  void pack() const {
    for (const Part& part : parts_) {
      if (part.what != nullptr)
        part.what->packer.pack(buffer_ + part.from, joined_.data() + part.to);
      else if (part.bytes > 0)
        std::memcpy(joined_.data() + part.to, buffer_ + part.from, static_cast<std::size_t>(part.bytes));
    }
  }
  void unpack() const {
    for (const Part& part : parts_) {
      if (part.what != nullptr)
        part.what->packer.unpack(joined_.data() + part.to, buffer_ + part.from);
      else if (part.bytes > 0)
        std::memcpy(buffer_ + part.from, joined_.data() + part.to, static_cast<std::size_t>(part.bytes));
    }
  }

  std::vector<int> counts, at;
  std::vector<MPI_Datatype> types;

 private:
  struct Part {
    std::shared_ptr<Counted> what;  // null: plain
    std::int64_t from, to, bytes;
  };
  std::byte* buffer_;
  std::vector<Part> parts_;
  Scratch joined_;
  bool packs_ = false, possible_ = true;
};

template <class Original, class Count, class At>
int alltoallw(const char* name, const void* caller, Original original, const void* out, const Count* out_counts,
              const At* out_at, const MPI_Datatype* out_types, void* in, const Count* in_counts, const At* in_at,
              const MPI_Datatype* in_types, MPI_Comm comm) {
  const auto by_mpi = [&] {
    return original(out, out_counts, out_at, out_types, in, in_counts, in_at, in_types, comm);
  };
  int size = 0, inter = 0;
  if (!session_runs() || comm == MPI_COMM_NULL || out == MPI_IN_PLACE ||
      PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter != 0 || PMPI_Comm_size(comm, &size) != MPI_SUCCESS)
    return by_mpi();
  const auto ranks = static_cast<std::size_t>(size);
  if (Exchange* exchange = exchange_of(comm, Exchange::Kind::all)) {
    const std::vector<Whole> sends = wholes(out, view(out_counts, ranks), view(out_at, ranks), out_types);
    const std::vector<Whole> receives = wholes(in, view(in_counts, ranks), view(in_at, ranks), in_types);
    if (!sound(sends) || !sound(receives)) return by_mpi();
    if (exchange->enter()) return exchange->run(name, caller, sends, receives);
  }
  const Joined sent(name, caller, out, view(out_counts, ranks), view(out_at, ranks), view(out_types, ranks));
  const Joined received(name, caller, in, view(in_counts, ranks), view(in_at, ranks), view(in_types, ranks));
  const bool packs_out = sent.packs() && sent.possible();
  const bool packs_in = received.packs() && received.possible();
  if constexpr (!std::is_same_v<At, int>) {
    // The two sides of one call have displacements of one kind.
    if (!packs_out || !packs_in) return by_mpi();
  }
  if (!packs_out && !packs_in) return by_mpi();
  if (packs_out) sent.pack();
  int result = MPI_SUCCESS;
  if constexpr (std::is_same_v<At, int>) {
    result = PMPI_Alltoallw(packs_out ? sent.data() : out, packs_out ? sent.counts.data() : out_counts,
                            packs_out ? sent.at.data() : out_at, packs_out ? sent.types.data() : out_types,
                            packs_in ? received.data() : in, packs_in ? received.counts.data() : in_counts,
                            packs_in ? received.at.data() : in_at, packs_in ? received.types.data() : in_types, comm);
  } else {
    result = PMPI_Alltoallw(sent.data(), sent.counts.data(), sent.at.data(), sent.types.data(), received.data(),
                            received.counts.data(), received.at.data(), received.types.data(), comm);
  }
  if (result == MPI_SUCCESS && packs_in) received.unpack();
  return result;
}

}  // namespace

HOOK int tasuki_MPI_Alltoallw(const void* out, const int* out_counts, const int* out_at, const MPI_Datatype* out_types,
                              void* in, const int* in_counts, const int* in_at, const MPI_Datatype* in_types,
                              MPI_Comm comm) {
  return alltoallw("MPI_Alltoallw", CALLER, PMPI_Alltoallw, out, out_counts, out_at, out_types, in, in_counts, in_at,
                   in_types, comm);
}

HOOK int tasuki_MPI_Neighbor_alltoallw(const void* out, const int* out_counts, const MPI_Aint* out_at,
                                       const MPI_Datatype* out_types, void* in, const int* in_counts,
                                       const MPI_Aint* in_at, const MPI_Datatype* in_types, MPI_Comm comm) {
  return neighbor_alltoallw("MPI_Neighbor_alltoallw", CALLER, PMPI_Neighbor_alltoallw, out, out_counts, out_at,
                            out_types, in, in_counts, in_at, in_types, comm);
}

#if MPI_VERSION >= 4
HOOK int tasuki_MPI_Alltoallw_c(const void* out, const MPI_Count* out_counts, const MPI_Aint* out_at,
                                const MPI_Datatype* out_types, void* in, const MPI_Count* in_counts,
                                const MPI_Aint* in_at, const MPI_Datatype* in_types, MPI_Comm comm) {
  return alltoallw("MPI_Alltoallw_c", CALLER, PMPI_Alltoallw_c, out, out_counts, out_at, out_types, in, in_counts,
                   in_at, in_types, comm);
}

HOOK int tasuki_MPI_Neighbor_alltoallw_c(const void* out, const MPI_Count* out_counts, const MPI_Aint* out_at,
                                         const MPI_Datatype* out_types, void* in, const MPI_Count* in_counts,
                                         const MPI_Aint* in_at, const MPI_Datatype* in_types, MPI_Comm comm) {
  return neighbor_alltoallw("MPI_Neighbor_alltoallw_c", CALLER, PMPI_Neighbor_alltoallw_c, out, out_counts, out_at,
                            out_types, in, in_counts, in_at, in_types, comm);
}
#endif
