// Links in several messages by the engines of the processor: halos, sums, transfers and broadcasts over a path that
// sends at most 1000 bytes at once leave the same bytes as those in one message.
#include <doctest/doctest.h>
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "paths/path.hpp"
#include "protocols/message.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

constexpr std::int64_t kMost = 1000;

// As path `mpi`, of which links are cut where MPI would not take them at once: here that is much sooner.
class Sliced final : public Protocol {
 public:
  Sliced() { small_.message_most = kMost; }
  void send(Builder& builder, Link& link) const override { message_.send(builder, with_small_messages(link)); }
  void recv(Builder& builder, Link& link) const override { message_.recv(builder, with_small_messages(link)); }

 private:
  Link& with_small_messages(Link& link) const {
    link.constants = &small_;
    return link;
  }
  Constants small_;
  MessageProtocol message_{Home::own, MessageProtocol::Cut::limit};
};

// Only by force, and not measured: it joins nobody by itself.
const PathRegistration registration{[] {
  Path path;
  path.name = "sliced";
  path.protocol = std::make_shared<Sliced>();
  path.joins = [](const Machine&, int, int) { return false; };
  path.offer = [](const Question& q) {
    return q.move.src_rank == q.move.dst_rank ? Offer::no("same rank") : Offer::yes(1, 1);
  };
  path.transport = "mpi";
  path.carried = {Verb::send, Verb::recv};
  return path;
}};

// How many messages leave the rank, of at most so many bytes as the path promises.
std::int64_t sends(const Plan& plan) {
  for (const Command& c : plan.commands) {
    const bool message = c.verb == Verb::send || c.verb == Verb::recv;
    if (message && plan.paths[static_cast<std::size_t>(c.path)] == "sliced") CHECK(c.bytes <= kMost);
  }
  return std::count_if(plan.commands.begin(), plan.commands.end(),
                       [](const Command& c) { return c.verb == Verb::send; });
}

// Runs on both paths, on both engines, with new data every time; what `run` leaves must be the same. The ranks send at
// least `times` as many messages.
template <class Run>
void same_in_slices(const Context& ctx, std::int64_t times, Run&& run) {
  std::vector<std::vector<double>> results;
  std::int64_t whole = 0;
  for (const char* path : {"mpi", "sliced"}) {
    for (const char* engine : {"inline", "thread"}) {
      OperationOptions options;
      options.path = path;
      options.engine = engine;
      std::vector<double> result;
      std::int64_t messages = 0;
      run(options, result, messages);
      MPI_Allreduce(MPI_IN_PLACE, &messages, 1, MPI_INT64_T, MPI_SUM, ctx.comm());
      results.push_back(std::move(result));
      if (whole == 0) whole = messages;
      if (std::string(path) == "sliced") CHECK(messages >= times * whole);
      CHECK(results.back().size() == results.front().size());
      CHECK(std::memcmp(results.back().data(), results.front().data(), results.front().size() * sizeof(double)) == 0);
    }
  }
}

template <class T>
void fill(T& values, std::mt19937& random) {
  // Numbers whose sum depends on the order of adding.
  for (double& value : values) value = std::ldexp(static_cast<double>(random()), static_cast<int>(random() % 40) - 20);
}

}  // namespace

TEST_CASE("halos and their reverse in many messages a link are those in one, bit for bit, thread too") {
  Context ctx(MPI_COMM_WORLD);
  const bool even = ctx.size() % 2 == 0;
  for (const int variant : {0, 1, 2}) {
    const bool reverse = variant > 0;
    const bool corners = variant < 2;
    same_in_slices(ctx, 3, [&](const OperationOptions& chosen, std::vector<double>& result, std::int64_t& messages) {
      // Cut in two dimensions, so that sums meet that come from several ranks, in several messages each.
      GridOptions torus;
      torus.periodic = {true, true, true};
      torus.split = {even ? 2 : 1, ctx.size() / (even ? 2 : 1), 1};
      const Grid grid(ctx, {23, 31, 17}, torus);
      const Field<double> u(grid, {.name = "u", .shadow = 2});
      const Field<double> v(grid, {.name = "v", .shadow = 1});
      HaloOptions options;
      static_cast<OperationOptions&>(options) = chosen;
      options.reverse = reverse;
      options.corners = corners;
      Halo halo({HaloField(u), HaloField(v)}, options);
      const VerifyReport report = verify(halo);
      INFO(report.text());
      CHECK(report.ok());
      messages = sends(halo.plan());
      for (int iteration = 0; iteration < 3; ++iteration) {
        std::mt19937 random(static_cast<unsigned>(100 * ctx.rank() + iteration));
        for (const auto* field : {&u, &v}) {
          std::vector<double> image(static_cast<std::size_t>(field->bytes()) / sizeof(double));
          fill(image, random);
          field->upload(image.data());
        }
        halo.start();
        halo.wait();
        for (const auto* field : {&u, &v}) {
          std::vector<double> image(static_cast<std::size_t>(field->bytes()) / sizeof(double));
          field->download(image.data());
          result.insert(result.end(), image.begin(), image.end());
        }
      }
    });
  }
}

TEST_CASE("transfers and broadcasts in many messages are those in one, packed or from where they lie, thread too") {
  Context ctx(MPI_COMM_WORLD);
  constexpr std::int64_t kCells = 3001;
  const Layout together = Layout::of<double>(kCells);
  const Layout scattered = Layout::vector(kCells, 1, 3, Layout::of<double>());
  const int last = ctx.size() - 1;
  for (const int variant : {0, 1, 2}) {
    const Layout& from = variant == 1 ? scattered : together;
    const Layout& to = variant == 2 ? scattered : together;
    same_in_slices(ctx, 20, [&](const OperationOptions& options, std::vector<double>& result, std::int64_t& messages) {
      std::vector<double> out(3 * kCells);
      std::vector<double> in(3 * kCells);
      Transfer transfer(ctx, {0, out.data(), from}, {last, in.data(), to}, options);
      CHECK(verify(transfer).ok());
      messages = sends(transfer.plan());
      for (unsigned iteration = 0; iteration < 3; ++iteration) {
        std::mt19937 random(iteration);
        fill(out, random);
        transfer.start();
        transfer.wait();
        result.insert(result.end(), in.begin(), in.end());
      }
    });
  }
  same_in_slices(ctx, 2, [&](const OperationOptions& chosen, std::vector<double>& result, std::int64_t& messages) {
    std::vector<double> data(kCells);
    BroadcastOptions options;
    static_cast<OperationOptions&>(options) = chosen;
    options.chunk = 4096;
    options.trees = 1;
    Broadcast broadcast(ctx, last, data.data(), kCells * 8, options);
    CHECK(verify(broadcast).ok());
    messages = sends(broadcast.plan());
    for (unsigned iteration = 0; iteration < 3; ++iteration) {
      std::mt19937 random(static_cast<unsigned>(ctx.rank()) + iteration);
      fill(data, random);
      broadcast.start();
      broadcast.wait();
      result.insert(result.end(), data.begin(), data.end());
    }
  });
}
