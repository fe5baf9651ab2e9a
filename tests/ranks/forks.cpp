// A forked child: every call is an error that says so, its end is quiet, and the parent does not notice.
#include <doctest/doctest.h>
#include <mpi.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "error_of.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

// What `body` returns in a child, which then ends. The texts are separated by lines.
std::string in_child(const std::function<std::string()>& body) {
  int ends[2] = {};
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const std::string text = body();
    const ssize_t wrote = write(ends[1], text.data(), text.size());
    _exit(wrote == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char part[512];
  for (ssize_t got = 0; (got = read(ends[0], part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  return text;
}

void fill(Field<double>& u, int iteration) {
  u.for_each([&](const Index& at, double& cell) { cell = static_cast<double>(at[0] * 100 + at[1] + iteration); });
}

bool arrived(const Field<double>& u, int iteration) {
  const std::int64_t extent = u.grid().extent(0);
  const std::int64_t below = (u.owned().lo[0] - 2 + extent) % extent;
  return u.data()[2] == static_cast<double>(below * 100 + iteration);
}

}  // namespace

TEST_CASE("in a forked child every call is an error, and its end is not noticed by the ranks, thread too") {
  for (const char* engine : {"inline", "thread"}) {
    for (const char* path : {"auto", "mpi"}) {
      auto ctx = std::make_unique<Context>(MPI_COMM_WORLD);
      if (ctx->size() == 1 && path[0] == 'm') continue;
      CAPTURE(engine);
      CAPTURE(path);
      const Grid grid(*ctx, {5 * ctx->size(), 7}, {.split = {ctx->size(), 1}, .periodic = {true, false}});
      auto u = std::make_unique<Field<double>>(grid, FieldOptions{.name = "u", .shadow = Width(2)});
      HaloOptions options;
      options.engine = engine;
      options.path = path;
      auto halo = std::make_unique<Halo>(HaloField(*u), options);
      auto idle = std::make_unique<Halo>(HaloField(*u), options);
      const std::vector<std::pair<const char*, std::function<void()>>> calls = {
          {"start", [&] { idle->start(); }},
          {"wait", [&] { halo->wait(); }},
          {"test", [&] { halo->test(); }},
          {"free", [&] { idle->free(); }},
          {"plan", [&] { (void)idle->plan(); }},
          {"barrier", [&] { ctx->barrier(); }},
          {"allgather", [&] { ctx->allgather(1); }},
          {"verify", [&] { verify(*idle); }},
          {"a grid", [&] { const Grid other(*ctx, {4}); }},
          {"a field", [&] { const Field<float> other(grid, {.name = "v"}); }},
          {"a halo", [&] { const Halo other{HaloField(*u)}; }},
          {"a transfer",
           [&] {
             const Transfer other(*ctx, {0, nullptr, Layout()}, {0, nullptr, Layout()});
           }},
          {"memory", [&] { shared_alloc(*ctx, 100); }},
          {"a context", [&] { const Context other(MPI_COMM_WORLD); }},
          {"threads", [&] { run_threads(2, [](const Context&) {}); }},
      };
      for (int iteration = 0; iteration < 4; ++iteration) {
        fill(*u, iteration);
        halo->start();
        if (iteration == 1 && ctx->rank() == 0) {
          const std::string text = in_child([&] {
            std::string wrong;
            for (const auto& [name, call] : calls) {
              const std::string said = error_of(call);
              if (said.find("was forked from") == std::string::npos) wrong += std::string(name) + ": " + said + "\n";
            }
            // Its end, in all orders that an owner might choose.
            halo.reset();
            ctx.reset();
            u.reset();
            idle.reset();
            return wrong + "quiet";
          });
          CHECK(text == "quiet");
        }
        halo->wait();
        CHECK(arrived(*u, iteration));
      }
      ctx->barrier();
    }
  }
}
