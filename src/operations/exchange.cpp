// The class of exchanges. What one rank asks is in shapes/exchange.hpp.
#include "tasuki/exchange.hpp"

#include "operations/description.hpp"
#include "shapes/exchange.hpp"

namespace tasuki {

Exchange::Exchange(const Context& context, const std::vector<ExchangeField>& fields,
                   const std::vector<ExchangeEntry>& entries, const ExchangeOptions& options) {
  ExchangeOfRank shape(context.rank(), {fields.begin(), fields.end()}, entries, options.reverse, options.op);
  std::vector<const void*> memory;
  for (const ExchangeField& field : fields) memory.push_back(field.base);
  state_ = std::make_shared<State>(context, description_of(context, shape, memory), options);
}

}  // namespace tasuki
