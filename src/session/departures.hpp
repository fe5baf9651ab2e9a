// Departures: parts of contexts that this rank has let go of while others may hold them. Ranks let go of parts in any
// order, so nobody waits there; what the part shares with others stays until all have let go.
#pragma once

namespace tasuki {

class Runtime;

/// Ends a part: at once if all of its ranks have let go of it, otherwise when that is found out later. Waits for the
/// others if nothing else of Tasuki is left in this process, except among threads.
void depart(Runtime* part) noexcept;

/// Ends the parts that this thread has let go of, and everybody else has too.
void collect_departures() noexcept;
/// The same for ranks that were threads of this process and have ended.
void collect_departures_of_threads() noexcept;
/// How many parts over MPI wait for others.
int departing();
/// Waits until they can be ended, and ends them.
void await_departures() noexcept;

/// Ends what a process has once, if no context is left: writes the trace, and MPI if Tasuki has started it.
void end_session();

}  // namespace tasuki
