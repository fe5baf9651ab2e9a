// The class of redistributions. What one rank asks is in shapes/redistribute_rank.hpp.
#include "tasuki/redistribute.hpp"

#include "operations/description.hpp"
#include "shapes/redistribute_rank.hpp"

namespace tasuki {

Redistribute::Redistribute(const Context& context, const ArraySide& from, const ArraySide& to,
                           const std::vector<RedistributeArray>& arrays, const std::vector<int>& axes,
                           const RedistributeOptions& options) {
  RedistributeOfRank shape(context.rank(), from, to, axes, {arrays.begin(), arrays.end()}, options.scratch);
  std::vector<const void*> memory;
  for (const RedistributeArray& array : arrays) memory.insert(memory.end(), {array.from, array.to});
  state_ = std::make_shared<State>(context, description_of(context, shape, memory), options);
}

}  // namespace tasuki
