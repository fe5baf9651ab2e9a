// The class of transfers. What one rank asks is in shapes/transfer.hpp.
#include "tasuki/transfer.hpp"

#include "operations/description.hpp"
#include "shapes/transfer.hpp"

namespace tasuki {

Transfer::Transfer(const Context& context, const TransferSide& from, const TransferSide& to,
                   const OperationOptions& options)
    : Operation() {
  const int rank = context.rank();
  TransferOfRank shape(rank, {from.rank, from.layout, from.elements}, {to.rank, to.layout, to.elements});
  state_ = std::make_shared<State>(context, description_of(context, shape, {from.base, to.base}), options);
}

}  // namespace tasuki
