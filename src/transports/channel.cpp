// What channels say to an engine that cannot use them; what paths `serve` keeps that from happening.
#include "transports/channel.hpp"

#include "tasuki/error.hpp"

namespace tasuki {

void Channel::start(std::int64_t, int) {
  throw Error("this channel carries GPU memory in streams only (a defect in Tasuki)");
}

bool Channel::test() {
  throw Error("this channel carries GPU memory in streams only (a defect in Tasuki)");
}

void Channel::enqueue(Stream) {
  throw Error("this channel carries host memory only (a defect in Tasuki)");
}

}  // namespace tasuki
