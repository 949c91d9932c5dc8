# One folder, one module: every *.cpp of src/NAME belongs to the library, every *_test.cpp beside it to the
# test program NAME_test. A new file needs no line here.
include(GoogleTest)

add_library(fairlead_settings INTERFACE)
target_compile_options(fairlead_settings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
target_include_directories(fairlead_settings INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)

set_property(GLOBAL PROPERTY fairlead_modules "")

function(fairlead_module name)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  if(NOT sources)
    return()
  endif()
  add_library(fairlead_${name} OBJECT ${sources})
  target_link_libraries(fairlead_${name} PRIVATE fairlead_settings fmt::fmt PkgConfig::isal Boost::headers)
  set_property(GLOBAL APPEND PROPERTY fairlead_modules ${name})
endfunction()

# The library that users link: all modules in one.
function(fairlead_library)
  get_property(modules GLOBAL PROPERTY fairlead_modules)
  set(objects "")
  foreach(module IN LISTS modules)
    list(APPEND objects $<TARGET_OBJECTS:fairlead_${module}>)
  endforeach()
  add_library(fairlead ${objects})
  add_library(fairlead::fairlead ALIAS fairlead)
  target_include_directories(fairlead PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
  target_link_libraries(fairlead PRIVATE fmt::fmt PkgConfig::isal Threads::Threads)
  target_compile_features(fairlead PUBLIC cxx_std_23)
endfunction()

function(fairlead_test_program name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE fairlead fairlead_settings fmt::fmt Boost::headers PkgConfig::isal
                        GTest::gmock GTest::gtest_main Threads::Threads nlohmann_json::nlohmann_json)
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST PROPERTIES TIMEOUT 120)
endfunction()

function(fairlead_module_tests)
  file(GLOB folders CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*)
  foreach(folder IN LISTS folders)
    file(GLOB sources CONFIGURE_DEPENDS ${folder}/*_test.cpp)
    if(sources)
      get_filename_component(name ${folder} NAME)
      fairlead_test_program(${name}_test ${sources})
    endif()
  endforeach()
endfunction()

# Each *_test.cpp of a folder is a test program of its own.
function(fairlead_tests folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*_test.cpp)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    fairlead_test_program(${name} ${source})
  endforeach()
endfunction()

# Each *_bench.cpp of a folder is a benchmark program of its own.
function(fairlead_benchmarks folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*_bench.cpp)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE fairlead fairlead_settings fmt::fmt Boost::headers CLI11::CLI11
                          nlohmann_json::nlohmann_json Threads::Threads)
  endforeach()
endfunction()

# tools/*.cpp make up the one command `fairlead`.
function(fairlead_programs folder)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  if(sources)
    add_executable(fairlead_command ${sources})
    set_target_properties(fairlead_command PROPERTIES OUTPUT_NAME fairlead)
    target_link_libraries(fairlead_command PRIVATE fairlead fairlead_settings fmt::fmt CLI11::CLI11
                          nlohmann_json::nlohmann_json Threads::Threads)
  endif()
endfunction()
