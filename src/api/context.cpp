// The C interface of Context, and of ranks that are threads.
#include <fmt/format.h>

#include <cstddef>
#include <limits>

#include "api/at_exit.hpp"
#include "api/nouns.hpp"
#include "tasuki/threads.hpp"

using namespace tasuki;
using namespace tasuki::api;

namespace {

// Asks where a wrong answer is an error, not the end of the program, whether a number names a communicator.
bool is_communicator(MPI_Comm comm) {
  const MPI_Comm places[] = {MPI_COMM_WORLD, MPI_COMM_SELF};  // MPIs differ in which of them is told
  MPI_Errhandler before[2];
  for (int i = 0; i < 2; ++i) {
    MPI_Comm_get_errhandler(places[i], &before[i]);
    MPI_Comm_set_errhandler(places[i], MPI_ERRORS_RETURN);
  }
  int size = 0;
  const bool valid = MPI_Comm_size(comm, &size) == MPI_SUCCESS;
  for (int i = 0; i < 2; ++i) {
    MPI_Comm_set_errhandler(places[i], before[i]);
    MPI_Errhandler_free(&before[i]);
  }
  return valid;
}

bool mpi_runs() {
  int started = 0;
  int ended = 0;
  MPI_Initialized(&started);
  MPI_Finalized(&ended);
  return started != 0 && ended == 0;
}

}  // namespace

tasuki_status tasuki_init(int* argc, char*** argv, tasuki_context* context) {
  return guarded("tasuki_init", [&] {
    given(context, "context");
    if ((argc == nullptr) != (argv == nullptr)) null_argument(argc == nullptr ? "argc" : "argv");
    int none = 0;
    char* end = nullptr;
    char** empty = &end;
    const bool ran = mpi_runs();
    *context = keep<tasuki_context>(argc == nullptr ? std::make_unique<Context>(none, empty)
                                                    : std::make_unique<Context>(*argc, *argv));
    if (!ran && mpi_runs()) watch_end();
  });
}

tasuki_status tasuki_context_create(MPI_Comm comm, tasuki_context* context) {
  return guarded("tasuki_context_create", [&] {
    given(context, "context");
    *context = keep<tasuki_context>(std::make_unique<Context>(comm));
  });
}

tasuki_status tasuki_context_create_f(int comm, tasuki_context* context) {
  return guarded("tasuki_context_create_f", [&] {
    given(context, "context");
    MPI_Comm found = MPI_COMM_NULL;
    if (mpi_runs()) {
      found = MPI_Comm_f2c(static_cast<MPI_Fint>(comm));
      if (found == MPI_Comm() || (found != MPI_COMM_NULL && !is_communicator(found)))
        throw Failure(TASUKI_BAD_ARGUMENT,
                      fmt::format("argument 'comm' is {}, which is no communicator of this MPI", comm));
    }
    *context = keep<tasuki_context>(std::make_unique<Context>(found));
  });
}

tasuki_status tasuki_context_subset(tasuki_context context, int count, const int* ranks, tasuki_context* subset) {
  return guarded("tasuki_context_subset", [&] {
    const Context& parent = get(context, "context");
    given(subset, "subset");
    if (count < 0) throw Failure(TASUKI_BAD_ARGUMENT, fmt::format("argument 'count' is {}; it must be above 0", count));
    const std::vector<int> list = list_from(ranks, count, "ranks");
    *subset = keep<tasuki_context>(std::make_unique<Context>(parent.subset(list)));
  });
}

tasuki_status tasuki_context_free(tasuki_context* context) {
  return let_go("tasuki_context_free", context, "context", [](Context&) {});
}

tasuki_status tasuki_rank(tasuki_context context, int* rank) {
  return guarded("tasuki_rank", [&] { *given(rank, "rank") = get(context, "context").rank(); });
}

tasuki_status tasuki_size(tasuki_context context, int* ranks) {
  return guarded("tasuki_size", [&] { *given(ranks, "ranks") = get(context, "context").size(); });
}

tasuki_status tasuki_comm(tasuki_context context, MPI_Comm* comm) {
  return guarded("tasuki_comm", [&] { *given(comm, "comm") = get(context, "context").comm(); });
}

tasuki_status tasuki_deadline(tasuki_context context, double* seconds) {
  return guarded("tasuki_deadline", [&] { *given(seconds, "seconds") = get(context, "context").deadline(); });
}

tasuki_status tasuki_set_deadline(tasuki_context context, double seconds) {
  return guarded("tasuki_set_deadline", [&] { get(context, "context").set_deadline(seconds); });
}

tasuki_status tasuki_barrier(tasuki_context context) {
  return guarded("tasuki_barrier", [&] { get(context, "context").barrier(); });
}

tasuki_status tasuki_allgather(tasuki_context context, const void* mine, size_t bytes, void* all) {
  return guarded("tasuki_allgather", [&] {
    const Context& ranks = get(context, "context");
    agree("tasuki_allgather", ranks, [&] {
      if (bytes == 0) return;
      const std::size_t most = std::numeric_limits<std::ptrdiff_t>::max() / static_cast<std::size_t>(ranks.size());
      if (bytes > most)
        throw Failure(TASUKI_BAD_ARGUMENT, fmt::format("argument 'bytes' is {}; {} ranks can have at most {} each",
                                                       bytes, ranks.size(), most));
      given(mine, "mine");
      given(all, "all");
    });
    const char* const from = bytes > 0 ? static_cast<const char*>(mine) : "";
    const std::vector<std::string> texts = ranks.allgather(std::string(from, bytes));
    for (std::size_t rank = 0; rank < texts.size(); ++rank)
      if (texts[rank].size() != texts[0].size())
        throw Error(ErrorKind::disagreement,
                    fmt::format("argument 'bytes' differs between ranks: rank 0 has {}, rank {} has {}",
                                texts[0].size(), rank, texts[rank].size()));
    for (std::size_t rank = 0; rank < texts.size() && bytes > 0; ++rank)
      std::memcpy(static_cast<char*>(all) + rank * bytes, texts[rank].data(), bytes);
  });
}

tasuki_status tasuki_describe(tasuki_context context, char** text) {
  return guarded("tasuki_describe", [&] { set_text(text, "text", get(context, "context").describe()); });
}

tasuki_status tasuki_run_threads(int ranks, tasuki_thread_body body, void* data) {
  return guarded("tasuki_run_threads", [&] {
    given(body, "body");
    run_threads(ranks, [&](const Context& context) {
      tasuki_context handle = keep<tasuki_context>(std::make_unique<Context>(context));
      const tasuki_context named = handle;
      const int status = body(handle, data);
      const std::string why = status == TASUKI_OK ? "" : tasuki_last_error();
      if (find_slot(value_of(named), Kind::context) != nullptr) tasuki_context_free(&handle);
      if (status != TASUKI_OK)
        throw Failure(TASUKI_FAILED,
                      fmt::format("the body returned {} ({}) on rank {}{}{}", status, tasuki_status_name(status),
                                  context.rank(), why.empty() ? "" : ": ", why));
    });
  });
}
