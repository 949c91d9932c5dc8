# What users get: the library, the public headers, the command, and both ways to find them (CMake and pkg-config).
# A static library makes its users link what it links, so both files then name fmt and isa-l.
include(CMakePackageConfigHelpers)

get_target_property(fairlead_type fairlead TYPE)
if(fairlead_type STREQUAL STATIC_LIBRARY)
  set(FAIRLEAD_IS_STATIC ON)
  set(FAIRLEAD_PC_REQUIRES "fmt libisal")
  set(FAIRLEAD_PC_LIBS "-pthread -lstdc++ -lm")  # the last two for who links as C
else()
  set(FAIRLEAD_IS_STATIC OFF)
endif()

install(TARGETS fairlead EXPORT fairlead FILE_SET HEADERS)
if(TARGET fairlead_command)
  set_target_properties(fairlead_command fairleadd PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  install(TARGETS fairlead_command fairleadd)
endif()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/fairlead)
install(EXPORT fairlead NAMESPACE fairlead:: FILE fairleadTargets.cmake DESTINATION ${package_folder})
configure_package_config_file(cmake/fairleadConfig.cmake.in fairleadConfig.cmake INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(fairleadConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/fairleadConfig.cmake ${PROJECT_BINARY_DIR}/fairleadConfigVersion.cmake
        DESTINATION ${package_folder})

fairlead_pkg_config(fairlead)

if(FAIRLEAD_TESTS AND NOT install IN_LIST FAIRLEAD_TEST_SKIP)
  add_test(NAME ${FAIRLEAD_TEST_PREFIX}package
           COMMAND ${CMAKE_COMMAND} -D BUILD_FOLDER=${PROJECT_BINARY_DIR} -D WORK_FOLDER=${PROJECT_BINARY_DIR}/package_test
                   -D COMPILER=${CMAKE_CXX_COMPILER} -D C_COMPILER=${CMAKE_C_COMPILER} -D FLAGS=${CMAKE_CXX_FLAGS}
                   -P ${PROJECT_SOURCE_DIR}/tests/install/package_test.cmake)
  set_tests_properties(${FAIRLEAD_TEST_PREFIX}package PROPERTIES TIMEOUT 300 LABELS install)
endif()
