# Run by `cmake --install`: writes which files were installed, relative to the prefix, for cmake/uninstall.cmake.
set(listed "")
foreach(file IN LISTS CMAKE_INSTALL_MANIFEST_FILES)
  cmake_path(RELATIVE_PATH file BASE_DIRECTORY "${CMAKE_INSTALL_PREFIX}")
  string(APPEND listed "${file}\n")
endforeach()
file(WRITE "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${list_of_files}" "${listed}${list_of_files}\n")
