// Look: what long computations of the pure half call now and then, so that a program can end them.
#pragma once

namespace tasuki::detail {

/// Calls what `set_planning_look` was given; about a hundred times a second or more often.
void look();

}  // namespace tasuki::detail
