// SavedPlan: does a loaded plan fit this context and this memory? If so it is bound as any plan is.
#include "tasuki/saved_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "fields/field_storage.hpp"
#include "memory/gpu.hpp"
#include "operations/check.hpp"
#include "operations/fits_field.hpp"
#include "operations/plans_of_all.hpp"
#include "operations/state.hpp"
#include "paths/path.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

bool is_user(const Buffer& buffer) {
  return buffer.role == Role::input || buffer.role == Role::output || buffer.role == Role::inout;
}

UserBuffer user_buffer(const PlanMemory& memory, const Buffer& wanted) {
  UserBuffer buffer;
  buffer.name = memory.name;
  buffer.role = wanted.role;
  buffer.bytes = memory.bytes;
  buffer.memory = memory.copies;
  buffer.current = memory.current;
  buffer.alternating = wanted.ring == 2;
  buffer.where = memory.bytes > 0 ? memory_of(memory.copies[0]) : Memory::host;
  if (memory.bytes == 0 && wanted.home == Home::device) buffer.where = Memory::device;
  return buffer;
}

// Why memory cannot be what the plan says of its buffer; empty if it can.
std::string misfit(Runtime& runtime, const Buffer& wanted, const UserBuffer& given) {
  const std::string what = fmt::format("buffer '{}' of the plan", wanted.name.view());
  if (given.bytes != wanted.bytes)
    return fmt::format("{} has {} bytes, but the memory given for it has {}", what, wanted.bytes, given.bytes);
  const int copies = std::max(wanted.copies, wanted.ring);
  if (std::ssize(given.memory) != copies)
    return fmt::format("{} has {} copies, but {} were given", what, copies, given.memory.size());
  if (copies > 1 && given.current == nullptr) return fmt::format("{} is a pair; give a field with two copies", what);
  const BufferFact fact = fact_of(runtime, given);
  if (given.bytes > 0 && fact.home() != wanted.home && !(wanted.home == Home::own && fact.home() == Home::shared))
    return fmt::format("{} lies in {} memory, but the memory given for it is {}; give memory of the same kind", what,
                       to_string(wanted.home), to_string(fact.home()));
  return {};
}

// Why the ranks cannot run the plan's paths; empty if they can.
std::string path_misfit(const Machine& machine, const Plan& plan) {
  for (const Command& c : plan.commands) {
    const std::string& name = plan.paths[static_cast<std::size_t>(c.path)];
    const Path& path = path_named(name);
    const int peer = c.peer < 0 ? plan.rank : c.peer;
    if (const auto why = machine.unusable.find(name); why != machine.unusable.end())
      return fmt::format("the plan takes path {}, which cannot be used here: {}", name, why->second);
    if (!path.joins(machine, plan.rank, peer))
      return fmt::format("the plan takes path {} between ranks {} and {}, which it does not join here", name, plan.rank,
                         peer);
  }
  return {};
}

std::string complaint_about(Runtime& runtime, const Machine& machine, const Plan& plan,
                            const std::vector<PlanMemory>& memory, std::vector<UserBuffer>& buffers) {
  if (plan.rank != runtime.rank() || plan.ranks != runtime.size())
    return fmt::format("the plan is that of rank {} of {}, but this is rank {} of {}", plan.rank, plan.ranks,
                       runtime.rank(), runtime.size());
  if (const auto complaints = plan.complaints(); !complaints.empty())
    return fmt::format("the plan is not sound: {}", fmt::join(complaints, "; "));
  for (const Command& c : plan.commands)
    if (c.verb == Verb::reduce && c.op == ReduceOp::own)
      return "the plan combines by a function of the user's, which no plan can hold; make the operation from its "
             "arguments";
  for (const PlanMemory& given : memory)
    if (given.copies.empty() || (given.bytes > 0 && given.copies[0] == nullptr))
      return fmt::format("the memory for buffer '{}' is null", given.name);
  for (const Buffer& wanted : plan.buffers) {
    if (!is_user(wanted)) continue;
    const auto given =
        std::find_if(memory.begin(), memory.end(), [&](const PlanMemory& m) { return m.name == wanted.name; });
    const bool known =
        std::any_of(buffers.begin(), buffers.end(), [&](const auto& b) { return b.name == wanted.name; });
    if (given == memory.end()) {
      if (wanted.name == kCheckOut || wanted.name == kCheckIn)
        return std::string("the plan was made with TASUKI_CHECK=1; save one that was made without");
      if (wanted.rank == plan.rank)
        return fmt::format("the plan names buffer '{}', for which no memory was given", wanted.name.view());
      continue;
    }
    if (!known) buffers.push_back(user_buffer(*given, wanted));
    if (wanted.rank != plan.rank) continue;
    const auto own = std::find_if(buffers.begin(), buffers.end(), [&](const auto& b) { return b.name == wanted.name; });
    if (std::string why = misfit(runtime, wanted, *own); !why.empty()) return why;
  }
  // A rank that has no part in a buffer of its peers still has to say what it is.
  for (const Buffer& wanted : plan.buffers) {
    const bool known =
        std::any_of(buffers.begin(), buffers.end(), [&](const auto& b) { return b.name == wanted.name; });
    if (!is_user(wanted) || known) continue;
    UserBuffer nothing;
    nothing.name = wanted.name;
    nothing.role = wanted.role;
    buffers.push_back(std::move(nothing));
  }
  if (std::string why = field_misfit(plan, memory); !why.empty()) return why;
  return path_misfit(machine, plan);
}

}  // namespace

PlanMemory::PlanMemory(const FieldBase& f) : name(f.name()), bytes(f.bytes()), field{f} {
  const auto& storage = *FieldAccess::storage(f);
  copies = storage.memory;
  if (f.copies() > 1) current = &storage.current;
}

SavedPlan::SavedPlan(const Context& context, const Plan& plan, const std::vector<PlanMemory>& memory,
                     const OperationOptions& options) {
  Runtime& runtime = runtime_of(context);
  const Machine& machine = machine_for(context);
  std::vector<UserBuffer> buffers;
  Agreement agreement(runtime, "SavedPlan");
  agreement.same("operation", plan.operation);
  Attempt attempt(runtime);
  attempt.locally("checking arguments", [&] {
    try {
      agreement.complain(complaint_about(runtime, machine, plan, memory, buffers));
    } catch (const Error& error) {
      agreement.complain(error);
    }
  });
  attempt.complain_to(agreement, "SavedPlan");
  agreement.check();
  const std::vector<Plan> plans = plans_of_all(runtime, "SavedPlan", [&] { return plan; });
  const VerifyReport report = verify(plans);
  if (!report.ok())
    throw Error(fmt::format("SavedPlan: rank {}: the plans of the ranks do not fit together: {}", context.rank(),
                            report.text()));
  state_ = std::make_shared<State>(context, plan, std::move(buffers), options);
  for (const PlanMemory& given : memory)
    for (const FieldBase& field : given.field) state_->keep(std::make_shared<FieldBase>(field));
}

}  // namespace tasuki
