# Other people's interfaces over include/fairlead. doors/ibverbs is a libibverbs.so.1 that `fairlead run` loads before a
# program; it lies in a folder of its own, where nobody finds it by accident.
set(FAIRLEAD_IBVERBS_FOLDER ${CMAKE_INSTALL_LIBDIR}/fairlead/ibverbs)  # the same in the build and below the prefix

function(fairlead_door_ibverbs folder)
  find_path(ibverbs_include infiniband/verbs.h REQUIRED)
  set(manager doors/rdma_cm)  # librdmacm speaks to a device file, which the same library makes up
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp ${PROJECT_SOURCE_DIR}/${manager}/*.cpp)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "(_test|/redirect)\\.cpp$")  # tests keep their libc
  add_library(fairlead_ibverbs_objects OBJECT ${sources})
  target_link_libraries(fairlead_ibverbs_objects PRIVATE fairlead fairlead_settings fmt::fmt)
  fairlead_precompile(fairlead_ibverbs_objects doors)
  fairlead_group(fairlead_ibverbs_objects)
  if(FAIRLEAD_TESTS)
    fairlead_module_test(ibverbs_test doors SOURCES ${tests} LIBRARIES fairlead_ibverbs_objects)
  endif()
  if(NOT FAIRLEAD_TOOLS)
    return()
  endif()
  add_library(fairlead_ibverbs SHARED ${PROJECT_SOURCE_DIR}/${folder}/redirect.cpp
              ${PROJECT_SOURCE_DIR}/${manager}/redirect.cpp)
  target_link_libraries(fairlead_ibverbs PRIVATE fairlead_ibverbs_objects fairlead fairlead_settings fmt::fmt Threads::Threads
                        ${CMAKE_DL_LIBS})
  set(versions ${PROJECT_SOURCE_DIR}/${folder}/exports.map)
  target_link_options(fairlead_ibverbs PRIVATE -Wl,-soname,libibverbs.so.1 -Wl,--version-script=${versions})
  set_target_properties(fairlead_ibverbs PROPERTIES
    OUTPUT_NAME libibverbs.so.1 PREFIX "" SUFFIX "" NO_SONAME ON LINK_DEPENDS ${versions}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${FAIRLEAD_IBVERBS_FOLDER} INSTALL_RPATH "$ORIGIN/../..")
  add_dependencies(fairlead_command fairlead_ibverbs)
  install(TARGETS fairlead_ibverbs LIBRARY DESTINATION ${FAIRLEAD_IBVERBS_FOLDER})
endfunction()
