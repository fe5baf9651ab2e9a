# Installs the headers, the library and a CMake package, so that users write find_package(tasuki).
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/tasuki)
set(libraries tasuki)
if(TARGET tasuki_fortran)
  list(APPEND libraries tasuki_fortran)
  get_target_property(modules tasuki_fortran Fortran_MODULE_DIRECTORY)
  install(DIRECTORY ${modules}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tasuki/fortran COMPONENT tasuki)
endif()
install(TARGETS ${libraries} EXPORT tasukiTargets COMPONENT tasuki)
install(DIRECTORY include/tasuki ${TASUKI_WRITTEN}/c/include/tasuki DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT tasuki)
install(DIRECTORY machines DESTINATION ${CMAKE_INSTALL_DATADIR}/tasuki COMPONENT tasuki)
install(EXPORT tasukiTargets NAMESPACE tasuki:: DESTINATION ${package_folder} COMPONENT tasuki)
configure_package_config_file(cmake/tasukiConfig.cmake.in ${CMAKE_BINARY_DIR}/tasukiConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/tasukiConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/tasukiConfig.cmake ${CMAKE_BINARY_DIR}/tasukiConfigVersion.cmake
        DESTINATION ${package_folder} COMPONENT tasuki)
