// MPI_Pack and MPI_Unpack. What they make and take is the bytes of the type map, without a header, in both MPIs.
#include <climits>

#include "hook.hpp"
#include "typed.hpp"

namespace {

using namespace tasuki::mpi;

// The typed buffer, if it is to be packed here and `room` bytes are enough for it.
Counted* packed_here(const void* buffer, std::int64_t count, MPI_Datatype type, std::int64_t room, MPI_Comm comm) {
  const Type& known = type_of(type);
  if (known.plain || !session().packing || count <= 0 || count > INT_MAX || comm == MPI_COMM_NULL) return nullptr;
  const std::shared_ptr<Counted>& what = counted(known, count);
  return packs_faster(*what, buffer, type) && what->bytes() <= room ? what.get() : nullptr;
}

template <class Original, class Count>
int pack(const char* name, const void* caller, Original original, const void* in, Count count, MPI_Datatype type,
         void* out, Count size, Count* position, MPI_Comm comm) {
  Counted* what = position != nullptr && *position >= 0 && out != nullptr
                      ? packed_here(in, count, type, size - *position, comm)
                      : nullptr;
  if (what == nullptr) return original(in, count, type, out, size, position, comm);
  what->packer.pack(static_cast<const std::byte*>(in), static_cast<std::byte*>(out) + *position);
  *position += static_cast<Count>(what->bytes());
  note(name, caller, *what, Route::packed);
  return MPI_SUCCESS;
}

template <class Original, class Count>
int unpack(const char* name, const void* caller, Original original, const void* in, Count size, Count* position,
           void* out, Count count, MPI_Datatype type, MPI_Comm comm) {
  Counted* what = position != nullptr && *position >= 0 && in != nullptr
                      ? packed_here(out, count, type, size - *position, comm)
                      : nullptr;
  if (what == nullptr) return original(in, size, position, out, count, type, comm);
  what->packer.unpack(static_cast<const std::byte*>(in) + *position, static_cast<std::byte*>(out));
  *position += static_cast<Count>(what->bytes());
  note(name, caller, *what, Route::packed);
  return MPI_SUCCESS;
}

}  // namespace

HOOK int tasuki_MPI_Pack(const void* in, int count, MPI_Datatype type, void* out, int size, int* position,
                         MPI_Comm comm) {
  return pack("MPI_Pack", CALLER, PMPI_Pack, in, count, type, out, size, position, comm);
}

HOOK int tasuki_MPI_Unpack(const void* in, int size, int* position, void* out, int count, MPI_Datatype type,
                           MPI_Comm comm) {
  return unpack("MPI_Unpack", CALLER, PMPI_Unpack, in, size, position, out, count, type, comm);
}

#if MPI_VERSION >= 4
HOOK int tasuki_MPI_Pack_c(const void* in, MPI_Count count, MPI_Datatype type, void* out, MPI_Count size,
                           MPI_Count* position, MPI_Comm comm) {
  return pack("MPI_Pack_c", CALLER, PMPI_Pack_c, in, count, type, out, size, position, comm);
}

HOOK int tasuki_MPI_Unpack_c(const void* in, MPI_Count size, MPI_Count* position, void* out, MPI_Count count,
                             MPI_Datatype type, MPI_Comm comm) {
  return unpack("MPI_Unpack_c", CALLER, PMPI_Unpack_c, in, size, position, out, count, type, comm);
}
#endif
