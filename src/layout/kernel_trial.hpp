// Which of two copy kernels is the faster one on this processor: a question that has to be tried out, which layouts, as
// pure code, cannot do. Who can (calibrate/kernel_trial.cpp) registers itself.
#pragma once

#include "tasuki/strided_copy.hpp"

namespace tasuki {

/// Whether `other` runs a copy in clearly less time than `usual`. `copy` has offsets and strides of at least 0.
using KernelTrial = bool (*)(CopyFunction other, CopyFunction usual, const StridedCopy& copy);

/// Tries it out; false, so that the usual kernel is taken, where nobody can.
bool clearly_faster(CopyFunction other, CopyFunction usual, const StridedCopy& copy);

/// Registers, at load time, who tries it out.
struct KernelTrialRegistration {
  explicit KernelTrialRegistration(KernelTrial trial);
};

}  // namespace tasuki
