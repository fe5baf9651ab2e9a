// All of Tasuki's public interface.
#pragma once

#include "tasuki/broadcast.hpp"
#include "tasuki/context.hpp"
#include "tasuki/device.hpp"
#include "tasuki/error.hpp"
#include "tasuki/field.hpp"
#include "tasuki/graph.hpp"
#include "tasuki/grid.hpp"
#include "tasuki/halo.hpp"
#include "tasuki/layout.hpp"
#include "tasuki/memory.hpp"
#include "tasuki/operation.hpp"
#include "tasuki/plan.hpp"
#include "tasuki/strided_copy.hpp"
#include "tasuki/threads.hpp"
#include "tasuki/transfer.hpp"
#include "tasuki/wait_hooks.hpp"
