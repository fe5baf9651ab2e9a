// Operations by their names: see named.hpp.
#include "shapes/named.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>

#include "tasuki/error.hpp"

namespace tasuki {

namespace {

using Shapes = std::vector<std::unique_ptr<RankShape>>;

struct Known {
  std::vector<std::string> arguments;
  ShapeRegistration::Make make;
};

std::map<std::string, Known>& known_shapes() {
  static std::map<std::string, Known> known;
  return known;
}

const Known& known_shape(const std::string& name) {
  const auto found = known_shapes().find(name);
  if (found != known_shapes().end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [other, shape] : known_shapes()) names.push_back(other);
  throw Error(fmt::format("operation '{}' cannot be planned by its name; those that can are: {}", name,
                          names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

std::size_t at(int rank) {
  return static_cast<std::size_t>(rank);
}

// Calls `check` for each rank; what is wrong there is thrown with the rank, as programs have it.
template <class Check>
void each(const Shapes& ranks, Check&& check) {
  for (int rank = 0; rank < std::ssize(ranks); ++rank) {
    const std::string operation = ranks[at(rank)]->operation();
    std::string wrong;
    try {
      wrong = check(*ranks[at(rank)], rank);
    } catch (const Error& error) {
      wrong = error.what();
    }
    if (!wrong.empty()) throw Error(fmt::format("{}: rank {}: {}", operation, rank, wrong));
  }
}

void compare(const Shapes& ranks) {
  const Agreed first = ranks.front()->agreed();
  for (int rank = 1; rank < std::ssize(ranks); ++rank) {
    const Agreed other = ranks[at(rank)]->agreed();
    for (std::size_t i = 0; i < std::min(first.size(), other.size()); ++i)
      if (first[i].second != other[i].second)
        throw Error(ErrorKind::disagreement,
                    fmt::format("{}: argument '{}' differs between ranks: rank 0 has {}, rank {} has {}",
                                ranks.front()->operation(), first[i].first, first[i].second, rank, other[i].second));
  }
}

// Every rank tells those that hear it.
void tell(const Shapes& ranks) {
  for (int rank = 0; rank < std::ssize(ranks); ++rank) {
    const RankShape& from = *ranks[at(rank)];
    const auto say = [&](int hearer, int told) {
      Encoder message;
      from.tell(told, message);
      Decoder heard(message.bytes());
      ranks[at(hearer)]->hear(rank, heard);
      heard.end();
    };
    if (const auto among = from.among()) {
      for (const int peer : *among) say(peer, peer);
    } else if (from.hearers() == Hearers::all) {
      for (int hearer = 0; hearer < std::ssize(ranks); ++hearer) say(hearer, -1);
    } else if (from.hearers() == Hearers::named) {
      for (const int hearer : from.named()) say(hearer, hearer);
    }
  }
}

class JointRanks final : public EachRank {
 public:
  JointRanks(const Machine& machine, Shapes ranks, Memory memory, bool shared)
      : machine_(machine), ranks_(std::move(ranks)), memory_(memory), shared_(shared) {}

  std::vector<BufferFact> facts(int rank) const override {
    const RankShape& shape = *ranks_[at(rank)];
    const Problem problem = problem_of(rank);
    std::vector<ByteRange> ranges(problem.buffers.size());
    const std::vector<MemoryUse> uses = shape.memory();
    for (std::size_t u = 0; u < uses.size(); ++u) ranges[uses[u].buffer < 0 ? u : at(uses[u].buffer)] = uses[u].range;
    std::vector<BufferFact> facts = facts_of(ranges, memory_, shared_);
    for (std::size_t b = 0; b < facts.size(); ++b)
      if (problem.buffers[b].role == Role::scratch) facts[b] = allocated(problem.buffers[b].bytes, memory_, true);
    return facts;
  }

 private:
  Problem problem_of(int rank) const override {
    return std::move(ranks_[at(rank)]->arrangements(machine_).front().problem);
  }

  Machine machine_;
  Shapes ranks_;
  Memory memory_;
  bool shared_;
};

}  // namespace

NamedArguments::NamedArguments(const NamedShape& shape, const std::vector<std::string>& names)
    : values_(shape.arguments) {
  for (const std::string& name : names)
    if (!values_.contains(name))
      throw Error(fmt::format("operation '{}': argument '{}' is missing", shape.operation, name));
  for (const auto& [name, value] : values_)
    if (std::ranges::find(names, name) == names.end())
      throw Error(
          fmt::format("operation '{}' has no argument '{}'; it has {}", shape.operation, name, fmt::join(names, ", ")));
}

int NamedArguments::integer(const std::string& name) const {
  const std::int64_t value = values_.at(name);
  if (value >= std::numeric_limits<int>::min() && value <= std::numeric_limits<int>::max())
    return static_cast<int>(value);
  throw Error(fmt::format("argument '{}' is {}; it must be an int", name, value));
}

ShapeRegistration::ShapeRegistration(std::string name, std::vector<std::string> arguments, Make make) {
  known_shapes()[std::move(name)] = {std::move(arguments), make};
}

std::shared_ptr<const JointShape> joint(const Machine& machine, std::vector<std::unique_ptr<RankShape>> ranks,
                                        Memory memory, bool shared) {
  check_gpus(machine, memory);
  each(ranks, [&](const RankShape& shape, int) { return shape.complaint(machine); });
  if (!ranks.front()->among()) compare(ranks);
  const auto list = [](RankShape& shape, int) {
    shape.list();
    return std::string();
  };
  const bool before = !ranks.front()->hears_sizes();
  if (before || ranks.front()->among()) each(ranks, list);
  tell(ranks);
  each(ranks, [](const RankShape& shape, int) { return shape.misfit(); });
  if (!before) each(ranks, list);
  each(ranks, [&](RankShape& shape, int) {
    for (std::size_t b = 0; b < shape.memory().size(); ++b)
      if (std::string wrong = shape.overlap_in(b); !wrong.empty()) return wrong;
    if (shape.among()) return std::string();
    if (shape.choosing()) shape.settle(memory, shared, true);
    return std::string();
  });
  return std::make_shared<const JointRanks>(machine, std::move(ranks), memory, shared);
}

std::shared_ptr<const JointShape> joint(const Machine& machine, const NamedShape& shape) {
  const Known& known = known_shape(shape.operation);
  const NamedArguments arguments(shape, known.arguments);
  Shapes ranks;
  for (int rank = 0; rank < machine.size(); ++rank) ranks.push_back(known.make(rank, arguments));
  return joint(machine, std::move(ranks), shape.memory, shape.shared);
}

}  // namespace tasuki
