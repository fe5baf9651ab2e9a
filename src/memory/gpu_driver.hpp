// Whether the process has loaded the CUDA driver, looked for ahead of those who ask (gpu.hpp).
#pragma once

namespace tasuki {

/// Looks for the driver among the libraries that the process has loaded, if there are new ones, as `memory_of` does for
/// each argument of an operation: that then takes no time. Does not initialise CUDA.
void look_for_driver();
/// How many libraries had been loaded when that was done last; 0: never, or the driver is among them.
unsigned long long libraries_seen();

}  // namespace tasuki
