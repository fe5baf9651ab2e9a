// The C interface of GPUs: which one, streams beside streams, and graphs.
#include <fmt/format.h>

#include "api/nouns.hpp"

using namespace tasuki;
using namespace tasuki::api;

tasuki_status tasuki_why_no_gpu(char** why) {
  return guarded("tasuki_why_no_gpu", [&] { set_text(why, "why", why_no_gpu()); });
}

tasuki_status tasuki_use_gpu(tasuki_context context, int* ordinal) {
  return guarded("tasuki_use_gpu", [&] {
    const Context& ranks = get(context, "context");
    agree("tasuki_use_gpu", ranks, [&] { given(ordinal, "ordinal"); });
    *ordinal = use_gpu(ranks);
  });
}

tasuki_status tasuki_synchronize(tasuki_context context, void* stream) {
  return guarded("tasuki_synchronize", [&] { synchronize(get(context, "context"), static_cast<Stream>(stream)); });
}

tasuki_status tasuki_fork_create(tasuki_fork* fork) {
  return guarded("tasuki_fork_create", [&] {
    given(fork, "fork");
    *fork = keep<tasuki_fork>(std::make_unique<Fork>());
  });
}

tasuki_status tasuki_fork_branch(tasuki_fork fork, void* from, void** stream) {
  return guarded("tasuki_fork_branch", [&] {
    Fork& one = get(fork, "fork");
    given(stream, "stream");
    *stream = one.branch(static_cast<Stream>(from));
  });
}

tasuki_status tasuki_fork_join(tasuki_fork fork, void* into) {
  return guarded("tasuki_fork_join", [&] { get(fork, "fork").join(static_cast<Stream>(into)); });
}

tasuki_status tasuki_fork_free(tasuki_fork* fork) {
  return let_go("tasuki_fork_free", fork, "fork", [](Fork&) {});
}

tasuki_status tasuki_graph_create(void* stream, tasuki_enqueue enqueue, void* data, tasuki_graph* graph) {
  return guarded("tasuki_graph_create", [&] {
    given(enqueue, "enqueue");
    given(graph, "graph");
    const auto captured = [&] {
      const int status = enqueue(data);
      if (status == TASUKI_OK) return;
      const bool known = status > TASUKI_OK && status <= TASUKI_SYSTEM;
      throw Failure(
          known ? static_cast<tasuki_status>(status) : TASUKI_FAILED,
          fmt::format("'enqueue' returned {} ({}): {}", status, tasuki_status_name(status), tasuki_last_error()));
    };
    *graph = keep<tasuki_graph>(std::make_unique<Graph>(static_cast<Stream>(stream), captured));
  });
}

tasuki_status tasuki_graph_launch(tasuki_graph graph, void* stream) {
  return guarded("tasuki_graph_launch", [&] { get(graph, "graph").launch(static_cast<Stream>(stream)); });
}

tasuki_status tasuki_graph_free(tasuki_graph* graph) {
  return let_go("tasuki_graph_free", graph, "graph", [](Graph&) {});
}
