// Operations that are planned off line by their names: a shape of one rank registers itself, with the names of its
// arguments, and all else is done for it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "shapes/joint.hpp"
#include "shapes/rank_shape.hpp"
#include "tasuki/dtype.hpp"
#include "tasuki/planning.hpp"

namespace tasuki {

/// The arguments of an operation by their names.
class NamedArguments {
 public:
  /// Throws `Error` unless these are the names that the operation knows.
  NamedArguments(const NamedShape& shape, const std::vector<std::string>& names);

  std::int64_t count(const std::string& name) const { return values_.at(name); }
  int integer(const std::string& name) const;  ///< Throws `Error` for a number that is no int.
  DType type(const std::string& name) const { return static_cast<DType>(values_.at(name)); }

 private:
  std::map<std::string, std::int64_t> values_;
};

/// `const ShapeRegistration registration{"shift", {"by", "bytes"}, [](int rank, const NamedArguments& given) { ... }};`
/// at namespace scope lets an operation be planned by its name, in every language.
struct ShapeRegistration {
  using Make = std::unique_ptr<RankShape> (*)(int rank, const NamedArguments& given);
  ShapeRegistration(std::string name, std::vector<std::string> arguments, Make make);
};

/// Off line: what ranks ask that check their arguments, compare them and tell each other of them as ranks of a program
/// do (operations/description.cpp), all in this call. Throws `Error` for what such ranks would refuse, with the same
/// words.
std::shared_ptr<const JointShape> joint(const Machine& machine, std::vector<std::unique_ptr<RankShape>> ranks,
                                        Memory memory, bool shared);

std::shared_ptr<const JointShape> joint(const Machine& machine, const NamedShape& shape);

}  // namespace tasuki
