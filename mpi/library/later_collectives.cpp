// Alltoallw and Neighbor_alltoallw that end later, non-blocking or persistent. They are MPI's: once a rank has started
// one, MPI goes on with it in whatever call the rank makes, which streams in shared memory (exchange.hpp) would not
// see. What is done is that types are given to MPI in its favourite spelling.
#include <climits>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "exchange.hpp"
#include "hook.hpp"
#include "known.hpp"
#include "report.hpp"
#include "requests.hpp"
#include "route.hpp"
#include "session.hpp"

// Open MPI has these since 5.0.
#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5
#pragma weak PMPI_Alltoallw_init
#pragma weak PMPI_Neighbor_alltoallw_init
#endif

namespace {

using namespace tasuki::mpi;

// One side's arguments, which MPI reads until the request has ended.
template <class Count, class At>
struct Side {
  std::vector<Count> counts;
  std::vector<At> at;
  std::vector<MPI_Datatype> types;
  std::vector<std::shared_ptr<Counted>> spelt;  // whose types these are
  bool changed = false;

  Side(const char* name, const void* caller, const std::vector<int>& peers, const void* buffer, const Count* how_many,
       const At* places, const MPI_Datatype* given)
      : counts(how_many, how_many + peers.size()),
        at(places, places + peers.size()),
        types(given, given + peers.size()) {
    for (std::size_t i = 0; i < peers.size(); ++i) {
      const Type& type = type_of(types[i]);
      if (type.plain || peers[i] < 0 || counts[i] <= 0 || counts[i] > INT_MAX) continue;
      const std::shared_ptr<Counted>& what = counted(type, counts[i]);
      const auto* begin =
          reinterpret_cast<const void*>(reinterpret_cast<MPI_Aint>(buffer) + static_cast<MPI_Aint>(at[i]));
      if (!in_host_memory(*what, begin)) continue;
      route_of(*what, begin, types[i]);
      const bool changes = what->spelt.type != MPI_DATATYPE_NULL;
      note(name, caller, *what, changes ? Route::spelt : Route::original);
      if (!changes) continue;
      counts[i] = static_cast<Count>(what->spelt.count);
      types[i] = what->spelt.type;
      spelt.push_back(what);
      changed = true;
    }
  }
};

template <class Count, class At>
struct Arguments {
  Side<Count, At> out, in;
};

std::optional<Peers> peers_of(MPI_Comm comm, Exchange::Kind kind) {
  int inter = 0, size = 0;
  if (comm == MPI_COMM_NULL || PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || inter != 0) return {};
  if (kind == Exchange::Kind::neighbours) return neighbours_of(comm);
  if (PMPI_Comm_size(comm, &size) != MPI_SUCCESS) return {};
  const std::vector<int> all(static_cast<std::size_t>(size), 0);  // whose numbers do not matter
  return Peers{all, all};
}

// `start` is the call, with the arguments that are given to it, but for its end.
template <class Count, class At, class Start>
int begin_later(const char* name, const void* caller, Exchange::Kind kind, bool persistent, const void* out,
                const Count* out_counts, const At* out_at, const MPI_Datatype* out_types, void* in,
                const Count* in_counts, const At* in_at, const MPI_Datatype* in_types, MPI_Comm comm,
                MPI_Request* request, const Start& start) {
  const std::optional<Peers> peers = session_runs() ? peers_of(comm, kind) : std::nullopt;
  const bool in_place = out == MPI_IN_PLACE;
  const auto missing = [](std::size_t count, const void* counts, const void* at, const void* types) {
    return count > 0 && (counts == nullptr || at == nullptr || types == nullptr);
  };
  if (!peers || request == nullptr || (in_place && kind == Exchange::Kind::neighbours) ||
      missing(in_place ? 0 : peers->targets.size(), out_counts, out_at, out_types) ||
      missing(peers->sources.size(), in_counts, in_at, in_types))
    return start(out_counts, out_at, out_types, in_counts, in_at, in_types);
  const std::vector<int> nobody;
  auto given = std::make_shared<Arguments<Count, At>>(
      Arguments<Count, At>{{name, caller, in_place ? nobody : peers->targets, out, out_counts, out_at, out_types},
                           {name, caller, peers->sources, in, in_counts, in_at, in_types}});
  if (!given->out.changed && !given->in.changed)
    return start(out_counts, out_at, out_types, in_counts, in_at, in_types);
  const int result = start(in_place ? out_counts : given->out.counts.data(), in_place ? out_at : given->out.at.data(),
                           in_place ? out_types : given->out.types.data(), given->in.counts.data(), given->in.at.data(),
                           given->in.types.data());
  if (result != MPI_SUCCESS) return result;
  Message message;
  message.persistent = persistent;
  message.active = !persistent;
  message.arguments = std::move(given);
  keep(*request, std::move(message));
  return result;
}

}  // namespace

#define LATER(name, kind_of_peers, Count, At)                                                                          \
  HOOK int tasuki_MPI_##name(const void* out, const Count* out_counts, const At* out_at,                               \
                             const MPI_Datatype* out_types, void* in, const Count* in_counts, const At* in_at,         \
                             const MPI_Datatype* in_types, MPI_Comm comm, MPI_Request* request) {                      \
    return begin_later("MPI_" #name, CALLER, Exchange::Kind::kind_of_peers, false, out, out_counts, out_at, out_types, \
                       in, in_counts, in_at, in_types, comm, request,                                                  \
                       [&](const Count* a, const At* b, const MPI_Datatype* c, const Count* d, const At* e,            \
                           const MPI_Datatype* f) { return PMPI_##name(out, a, b, c, in, d, e, f, comm, request); });  \
  }
#define LATER_INIT(name, kind_of_peers, Count, At)                                                                    \
  HOOK int tasuki_MPI_##name(const void* out, const Count* out_counts, const At* out_at,                              \
                             const MPI_Datatype* out_types, void* in, const Count* in_counts, const At* in_at,        \
                             const MPI_Datatype* in_types, MPI_Comm comm, MPI_Info info, MPI_Request* request) {      \
    return begin_later(                                                                                               \
        "MPI_" #name, CALLER, Exchange::Kind::kind_of_peers, true, out, out_counts, out_at, out_types, in, in_counts, \
        in_at, in_types, comm, request,                                                                               \
        [&](const Count* a, const At* b, const MPI_Datatype* c, const Count* d, const At* e, const MPI_Datatype* f) { \
          return PMPI_##name(out, a, b, c, in, d, e, f, comm, info, request);                                         \
        });                                                                                                           \
  }

LATER(Ialltoallw, all, int, int)
LATER(Ineighbor_alltoallw, neighbours, int, MPI_Aint)
#if MPI_VERSION >= 4
LATER(Ialltoallw_c, all, MPI_Count, MPI_Aint)
LATER(Ineighbor_alltoallw_c, neighbours, MPI_Count, MPI_Aint)
LATER_INIT(Alltoallw_init_c, all, MPI_Count, MPI_Aint)
LATER_INIT(Neighbor_alltoallw_init_c, neighbours, MPI_Count, MPI_Aint)
#endif
#if MPI_VERSION >= 4 || (defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5)
LATER_INIT(Alltoallw_init, all, int, int)
LATER_INIT(Neighbor_alltoallw_init, neighbours, int, MPI_Aint)
#endif
