// Which of two copy kernels is faster on this processor. That must be tried out, which layouts, being pure code, cannot
// do. calibrate/kernel_trial.cpp tries it out, and registers itself here.
#pragma once

#include "tasuki/strided_copy.hpp"

namespace tasuki {

/// True if `other` runs a copy in clearly less time than `usual`. `copy` has offsets and strides of at least 0.
using KernelTrial = bool (*)(CopyFunction other, CopyFunction usual, const StridedCopy& copy);

/// Calls the registered trial. Without one the result is false, and the usual kernel is taken.
bool clearly_faster(CopyFunction other, CopyFunction usual, const StridedCopy& copy);

/// Registers the trial, at load time.
struct KernelTrialRegistration {
  explicit KernelTrialRegistration(KernelTrial trial);
};

}  // namespace tasuki
