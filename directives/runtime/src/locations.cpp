// See locations.hpp.
#include "locations.hpp"

#include <string>

#include "tasuki/error.hpp"

namespace tasuki::xmp {

void take_best(const Gathered& in, const Chosen& what) {
  const bool known = with_ordered(in.type, [&](auto zero) {
    for (std::int64_t i = 0; i < in.count; ++i) take_best_at<decltype(zero)>(in, what, i);
  });
  if (!known) throw Error("values of type " + std::string(to_string(in.type)) + " have no order");
}

}  // namespace tasuki::xmp
