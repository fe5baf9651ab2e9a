// The class of exchanges. What one rank asks is in shapes/exchange.hpp.
#include "tasuki/exchange.hpp"

#include "operations/description.hpp"
#include "shapes/exchange.hpp"

namespace tasuki {

Exchange::Exchange(const Context& context, const std::vector<ExchangeField>& fields,
                   const std::vector<ExchangeEntry>& entries, const ExchangeOptions& options) {
  std::vector<const void*> memory;
  for (const ExchangeField& field : fields) memory.push_back(field.base);
  const auto described = [&] {  // the lists in the shape are gone when memory is allocated for what moves
    ExchangeOfRank shape(context.rank(), {fields.begin(), fields.end()}, entries, options.reverse, options.op);
    return description_of(context, shape, memory);
  };
  state_ = std::make_shared<State>(context, described(), options);
}

}  // namespace tasuki
