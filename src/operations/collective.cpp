// Making a collective: arguments are checked and compared, an algorithm is chosen, memory is named. See collective.hpp.
#include "operations/collective.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

#include "collectives/algorithm.hpp"
#include "collectives/candidates.hpp"
#include "collectives/measuring.hpp"
#include "layout/counted.hpp"
#include "memory/gpu.hpp"
#include "operations/collective_layouts.hpp"
#include "operations/given_memory.hpp"
#include "paths/path.hpp"
#include "session/gpus.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr std::uint64_t kYes = ~std::uint64_t{0};

// TASUKI_ALGORITHM for this collective; the settings have been checked.
std::string setting_for(const std::string& setting, CollectiveKind kind) {
  const std::string wanted = std::string(to_string(kind)) + ':';
  for (std::size_t at = 0; at < setting.size();) {
    const std::size_t end = std::min(setting.find(',', at), setting.size());
    if (setting.compare(at, wanted.size(), wanted) == 0)
      return setting.substr(at + wanted.size(), end - at - wanted.size());
    at = end + 1;
  }
  return "auto";
}

bool overlap(const void* a, std::int64_t a_bytes, const void* b, std::int64_t b_bytes) {
  const auto begin_a = reinterpret_cast<std::uintptr_t>(a);
  const auto begin_b = reinterpret_cast<std::uintptr_t>(b);
  return begin_a < begin_b + static_cast<std::uintptr_t>(b_bytes) &&
         begin_b < begin_a + static_cast<std::uintptr_t>(a_bytes);
}

class Making {
 public:
  Making(const Context& context, CollectiveCall call, const CollectiveOptions& options)
      : context_(context),
        runtime_(runtime_of(context)),
        call_(std::move(call)),
        d_(runtime_, call_.operation),
        tune_(options.tune) {
    CollectiveShape& shape = call_.shape;
    shape.trees = options.trees;
    shape.arity = options.arity;
    shape.chunk = options.chunk;
    shape.ordered = shape.ordered || options.ordered;
    shape.algorithm =
        options.algorithm != "auto" ? options.algorithm : setting_for(runtime_.settings().algorithm, shape.kind);
    shape.path = options.path != "auto" ? options.path : without_directions(runtime_.settings().path);
    engine_ = engine_named(runtime_, options.engine);
    // `out` of a scatter is what its root may do without, `in` of all others.
    const void* marked = shape.kind == CollectiveKind::scatter ? call_.out : call_.in;
    marked_ = marked == in_place && shape.kind != CollectiveKind::broadcast;
    shape.in_place = marked_;
  }

  Description describe() && {
    agree();
    if (call_.has_matrix) gather_counts();
    if (call_.has_layouts) gather_layouts();
    settle_memory();
    d_.combine = call_.combine;
    d_.where = call_.shape.memory;
    const Machine& machine = machine_for(context_, call_.shape.path);
    if (call_.shape.memory == Memory::host) leave_to_engine(runtime_, engine_);
    d_.attempt.locally("choosing an algorithm", [&] {
      try {
        const CollectivePlan layout(machine, call_.shape);
        d_.problem = layout.problem(me());
        d_.predicted = layout.predicted();
        d_.buffers = memory_of_buffers(layout, d_.problem);
        if (tune_ > 1) add_alternatives(machine, layout, d_);
      } catch (const Error& error) {
        d_.agreement.complain(error);
      }
    });
    return std::move(d_);
  }

 private:
  int me() const { return runtime_.rank(); }
  bool rooted() const { return tasuki::rooted(call_.shape.kind); }

  // Compares the arguments; afterwards they are known to be good, but for counts that differ by rank.
  void agree() {
    const CollectiveShape& shape = call_.shape;
    Agreement agreement(runtime_, call_.operation);
    agreement.same("layouts", call_.has_layouts ? "true" : "false");
    agreement.same("individual counts", call_.has_matrix ? "true" : "false");
    if (rooted()) agreement.same("root", shape.root);
    if (call_.has_layouts) {
      // They may differ, and are compared when all are known.
    } else if (!call_.has_counts) {
      agreement.same(call_.count_name, shape.count);
    } else {
      agreement.same("counts", fmt::format("{}", fmt::join(shape.counts, " ")));
    }
    agreement.same("type", shown(shape.type))
        .same("op", shape.own.empty() ? shown(shape.op) : fmt::format("own '{}'", shape.own));
    agreement.same("ordered", shape.ordered ? "true" : "false");
    if (!rooted()) agreement.same("in_place", marked_ ? "true" : "false");
    agreement.same("algorithm", shape.algorithm).same("path", shape.path);
    agreement.same("tune", tune_);
    agreement.same("trees", shape.trees).same("arity", shape.arity).same("chunk", shape.chunk);
    agreement.same("where", std::string(to_string(shape.memory)));  // of a barrier, which has no memory to tell
    d_.attempt.locally("checking arguments", [&] { agreement.complain(complaint()); });
    d_.attempt.complain_to(agreement, call_.operation);
    agreement.check();
  }

  // What is wrong on this rank by itself.
  std::string complaint() const {
    const CollectiveShape& shape = call_.shape;
    for (std::string wrong : {path_complaint(shape.path, 0), enumerator_complaint("type", shape.type),
                              enumerator_complaint("op", shape.op)})
      if (!wrong.empty()) return wrong;
    if (shape.root < 0 || shape.root >= context_.size())
      return fmt::format("argument 'root' is {}, but the context has ranks 0 to {}", shape.root, context_.size() - 1);
    if (call_.has_counts && std::ssize(shape.counts) != context_.size())
      return fmt::format("argument 'counts' has {} entries for {}", shape.counts.size(),
                         counted(context_.size(), "rank"));
    if (shape.count < 0)
      return fmt::format("argument '{}' is {}; it must not be negative", call_.count_name, shape.count);
    if (marked_ && rooted() && me() != shape.root)
      return fmt::format("argument '{}' is in_place, which is for the root; rank {} is not",
                         shape.kind == CollectiveKind::scatter ? call_.out_name : call_.in_name, me());
    for (const auto* counts : {&call_.send_counts, &call_.receive_counts}) {
      if (!call_.has_matrix) break;
      const char* name = counts == &call_.send_counts ? "send_counts" : "receive_counts";
      if (std::ssize(*counts) != context_.size())
        return fmt::format("argument '{}' has {} entries for {}", name, counts->size(),
                           counted(context_.size(), "rank"));
      for (std::size_t r = 0; r < counts->size(); ++r)
        if ((*counts)[r] < 0)
          return fmt::format("argument '{}' is {} for rank {}; it must not be negative", name, (*counts)[r], r);
    }
    try {
      check_algorithm(shape);
      if (shape.op == ReduceOp::own && call_.combine == nullptr)
        return "argument 'op' is own; give an Operator with a name and a function";
      const Collective collective(runtime_.machine, shape);
      if (call_.has_layouts) return complaint_about_layouts(call_, me(), context_.size());
      if (!call_.has_matrix) return complaint_about_memory(collective);
    } catch (const Error& error) {
      std::string text = error.what();
      const std::string in_shapes = "argument 'count' ";
      if (text.starts_with(in_shapes))
        text.replace(0, in_shapes.size(), fmt::format("argument '{}' ", call_.count_name));
      return text;
    }
    return {};
  }

  std::array<Given, 2> given(const Collective& collective) const {
    Given in{call_.in_name, call_.in};
    Given out{call_.out_name, call_.out};
    if (collective.kind() == CollectiveKind::barrier) return {in, out};
    const auto uses = [&](Given& one, int buffer) {
      one.bytes = collective.span_of(me(), buffer);
      one.begins_at = collective.begins_at(me(), buffer);
    };
    const bool marks_out = collective.kind() == CollectiveKind::scatter;
    if (!marked_ || marks_out) uses(in, collective.in());
    if (!(marked_ && marks_out) && collective.kind() != CollectiveKind::broadcast) uses(out, collective.out());
    return {in, out};
  }

  // Whether `in` and `out` have bytes in common.
  bool meets(const Collective& collective, const Given& in, const Given& out) const {
    if (in.bytes == 0 || out.bytes == 0 || !overlap(in.at(), in.bytes, out.at(), out.bytes)) return false;
    if (!collective.has_layouts()) return true;
    const auto layout = [this](const std::vector<Layout>& all) { return all[static_cast<std::size_t>(me())]; };
    return meet(layout(call_.shape.in_layouts), layout(call_.shape.out_layouts),
                static_cast<const std::byte*>(out.base) - static_cast<const std::byte*>(in.base));
  }

  std::string complaint_about_memory(const Collective& collective) const {
    if (collective.kind() == CollectiveKind::barrier) return {};
    const auto [in, out] = given(collective);
    for (const Given& one : {in, out}) {
      if (one.bytes == 0) continue;
      if (one.base == nullptr) return fmt::format("argument '{}' is null", one.name);
      if (one.base == in_place && collective.kind() == CollectiveKind::broadcast)
        return fmt::format("argument '{}' is in_place, but a broadcast has no other buffer; give the memory", one.name);
      if (one.base == in_place)
        return fmt::format("argument '{}' is in_place, which only the other buffer may be", one.name);
      if (call_.combine != nullptr && memory_of(one.at()) == Memory::device)
        return fmt::format(
            "argument 'op' is '{}', a function that runs on the processor, but '{}' is on a GPU; give "
            "an operator of dtype.hpp, or host memory",
            call_.shape.own, one.name);
    }
    if (meets(collective, in, out))
      return fmt::format("arguments '{}' and '{}' overlap in memory; work in place with 'in_place'", call_.in_name,
                         call_.out_name);
    return {};
  }

  // Every rank tells what it sends to and gets from each.
  void gather_counts() {
    const auto told = d_.attempt.gather(
        call_.operation,
        [&](Encoder& to) { to.text("counts").numbers(call_.send_counts).numbers(call_.receive_counts); },
        fmt::format("{}: gathering counts", call_.operation));
    const std::size_t n = told.size();
    std::vector<std::int64_t> received(n * n);
    call_.shape.counts.assign(n * n, 0);
    for (std::size_t r = 0; r < n; ++r) read_counts(told[r], r, received);
    Agreement agreement(runtime_, call_.operation);
    const auto i = static_cast<std::size_t>(me());
    for (std::size_t r = 0; r < n; ++r) {
      if (call_.shape.counts[r * n + i] == received[i * n + r]) continue;
      agreement.complain(
          fmt::format("argument 'receive_counts' is {} for rank {}, whose 'send_counts' has {} for this rank",
                      received[i * n + r], r, call_.shape.counts[r * n + i]));
    }
    check_memory(agreement);
  }

  // What rank `r` tells: how many elements it sends to each rank, and gets from each.
  void read_counts(const std::string& told, std::size_t r, std::vector<std::int64_t>& received) {
    const auto n = static_cast<std::size_t>(context_.size());
    try {
      Decoder from(told);
      if (from.text() != "counts") throw Malformed("no counts");
      for (auto* const all : {&call_.shape.counts, &received}) {
        const auto row = from.numbers();
        if (row.size() != n || std::ranges::any_of(row, [](std::int64_t count) { return count < 0; }))
          throw Malformed("no counts");
        std::copy_n(row.begin(), n, all->begin() + static_cast<std::ptrdiff_t>(r * n));
      }
      from.end();
    } catch (const Malformed&) {  // only where the ranks' calls are not compared
      throw Error(
          fmt::format("{}: rank {} tells no counts; all ranks must make the same collective", call_.operation, r));
    }
  }

  // Every rank tells which bytes its blocks are.
  void gather_layouts() {
    settle_layouts(runtime_, d_.attempt, call_);
    Agreement agreement(runtime_, call_.operation);
    check_memory(agreement);
  }

  void check_memory(Agreement& agreement) {
    d_.attempt.locally("checking memory", [&] {
      try {
        agreement.complain(complaint_about_memory(Collective(runtime_.machine, call_.shape)));
      } catch (const Error& error) {
        agreement.complain(error);
      }
    });
    d_.attempt.complain_to(agreement, call_.operation);
    agreement.check();
  }

  // What kind of memory it is, whether a root works in place, and whether all memory can be mapped by peers, is for all
  // to know.
  void settle_memory() {
    CollectiveShape& shape = call_.shape;
    bool shared = true;
    std::array<Given, 2> arguments;
    d_.attempt.locally("looking for shared memory", [&] {
      arguments = given(Collective(runtime_.machine, shape));
      for (const Given& one : arguments)
        if (one.has_address() && one.bytes > 0)
          shared =
              shared && (memory_of(one.at()) == Memory::device || runtime_.memory().find(one.at(), one.bytes).valid());
    });
    const Settled settled =
        tasuki::settle_memory(runtime_, d_.attempt, call_.operation, arguments, shape.memory == Memory::device,
                              {shared ? kYes : 0, rooted() && marked_ ? 0 : kYes});
    shape.shared = settled.also[0] == kYes;
    if (rooted()) shape.in_place = settled.also[1] != kYes;
    shape.memory = settled.memory;
    if (shape.memory == Memory::host) return;
    const GpuMemory& gpus = gpu_memory(runtime_);
    d_.attempt.locally("looking for memory that GPUs share", [&] {
      for (const Given& one : arguments) {
        std::string why;
        shared = shared && (one.bytes == 0 || one.base == in_place || gpus.find(one.at(), why).valid != 0);
      }
    });
    const std::string doing = fmt::format("{}: comparing what memory it is", call_.operation);
    shape.shared = d_.attempt.combine(call_.operation, {shared ? kYes : 0}, doing)[0] == kYes;
  }

  std::vector<UserBuffer> memory_of_buffers(const CollectivePlan& layout, const Problem& problem) const {
    std::vector<UserBuffer> buffers;
    for (std::size_t b = 0; b < problem.buffers.size(); ++b)
      buffers.push_back(memory_of_buffer(layout.collective(), problem.buffers[b], static_cast<int>(b)));
    return buffers;
  }

  // What option `tune` tries: the choice, and what is predicted to be fastest beside it.
  void add_alternatives(const Machine& machine, const CollectivePlan& chosen, Description& d) const {
    const std::string& path = chosen.path() != "auto" ? chosen.path() : call_.shape.path;
    d.alternatives.push_back({fmt::format("{}, as predicted", name_of(chosen.candidate())), path, d.problem, d.buffers,
                              chosen.predicted().value_or(-1)});
    const auto collective = std::make_shared<const Collective>(machine, call_.shape);
    std::vector<Candidate> all = candidates_to_try(machine, collective);
    const bool predicted = by_plans(all);
    for (const Candidate& one : all) {
      if (std::ssize(d.alternatives) > 2 * static_cast<std::ptrdiff_t>(tune_)) break;
      const CollectivePlan layout(machine, call_.shape, one);
      Problem problem = layout.problem(me());
      std::vector<UserBuffer> buffers = memory_of_buffers(layout, problem);
      d.alternatives.push_back(
          {name_of(one), layout.path(), std::move(problem), std::move(buffers), one.model(predicted) * one.factor});
    }
  }

  // The one buffer of a collective that has one.
  void* data() const { return call_.shape.kind == CollectiveKind::broadcast ? const_cast<void*>(call_.in) : call_.out; }

  UserBuffer memory_of_buffer(const Collective& collective, const UserRole& role, int b) const {
    UserBuffer buffer;
    buffer.name = role.name;
    buffer.role = role.role;
    buffer.where = call_.shape.memory;
    if (role.role == Role::scratch) {
      buffer.bytes = role.bytes;
      return buffer;
    }
    buffer.bytes = collective.span_of(me(), b);
    if (buffer.bytes == 0) return buffer;
    void* const base = collective.both() ? data() : b == collective.in() ? const_cast<void*>(call_.in) : call_.out;
    buffer.memory = {static_cast<std::byte*>(base) + collective.begins_at(me(), b)};
    return buffer;
  }

  const Context& context_;
  Runtime& runtime_;
  CollectiveCall call_;
  Description d_;
  std::string engine_;
  int tune_ = 0;
  bool marked_ = false;  // an argument of this rank is `in_place`
};

}  // namespace

Description describe(const Context& context, CollectiveCall call, const CollectiveOptions& options) {
  return Making(context, std::move(call), options).describe();
}

}  // namespace tasuki
