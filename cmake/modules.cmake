# One folder, one module: every *.cpp of src/NAME belongs to the library, every *_test.cpp beside it to the
# test program NAME_test (cmake/programs.cmake). A new file needs no line here.
add_library(fairlead_settings INTERFACE)
target_compile_options(fairlead_settings INTERFACE -fno-semantic-interposition -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                       $<$<CXX_COMPILER_ID:Clang>:-Wno-missing-designated-field-initializers>  # naming some is the point
                       -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)  # a failed ENSURE names src/..., wherever it was built
target_include_directories(fairlead_settings INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
                           ${PROJECT_SOURCE_DIR})

# With CMAKE_VERIFY_INTERFACE_HEADER_SETS (preset clang) the target all_verify_interface_header_sets compiles each header alone.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.hpp)
target_sources(fairlead_settings INTERFACE FILE_SET internal TYPE HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${headers})

set_property(GLOBAL PROPERTY fairlead_modules "")

# The modules of a release are optimised as one piece: a message passes five of them. The outcome is one ordinary object, so
# nobody who links the library waits for it or needs the same compiler.
include(CheckIPOSupported)
set(is_gnu_release OFF)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_BUILD_TYPE STREQUAL Release)
  check_ipo_supported(RESULT is_gnu_release OUTPUT why LANGUAGES CXX)
endif()
option(FAIRLEAD_WHOLE "optimise all modules as one (GCC, Release); OFF saves a minute after each change" ${is_gnu_release})
set(FAIRLEAD_WHOLE_FLAGS -flto=auto -fno-fat-lto-objects)

# Our own programs and tests know the engine from inside; others get the public names alone. What is inline they have
# themselves.
set(FAIRLEAD_PUBLIC_NAMES OFF)
if(BUILD_SHARED_LIBS AND NOT FAIRLEAD_TOOLS AND NOT FAIRLEAD_TESTS)
  set(FAIRLEAD_PUBLIC_NAMES ON)
endif()

# APART FILE...: sources that are compiled each by itself, and not optimised with the other modules. So is what includes
# toml++: beside the others it is an internal error of GCC 12 (add_symbol_to_partition_1), and with a sanitizer it takes
# clang 8 s, a quarter of that if it is not optimised.
function(fairlead_module name)
  cmake_parse_arguments(PARSE_ARGV 1 module "" "" APART)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  if(NOT sources)
    return()
  endif()
  if(module_APART)
    list(TRANSFORM module_APART REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/src/${name}/\\1.cpp")
    list(REMOVE_ITEM sources ${module_APART})
    add_library(fairlead_${name}_apart OBJECT ${module_APART})
    target_link_libraries(fairlead_${name}_apart PRIVATE fairlead_settings fmt::fmt Boost::headers)
    target_compile_options(fairlead_${name}_apart PRIVATE $<$<CONFIG:RelWithDebInfo>:-O0>)
    set_property(GLOBAL APPEND PROPERTY fairlead_apart $<TARGET_OBJECTS:fairlead_${name}_apart>)
  endif()
  add_library(fairlead_${name} OBJECT ${sources})
  target_link_libraries(fairlead_${name} PRIVATE fairlead_settings fmt::fmt PkgConfig::isal Boost::headers)
  set_target_properties(fairlead_${name} PROPERTIES VISIBILITY_INLINES_HIDDEN ${FAIRLEAD_PUBLIC_NAMES})
  fairlead_precompile(fairlead_${name} modules)
  fairlead_group(fairlead_${name})
  if(FAIRLEAD_WHOLE)
    target_compile_options(fairlead_${name} PRIVATE ${FAIRLEAD_WHOLE_FLAGS})
  endif()
  set_property(GLOBAL APPEND PROPERTY fairlead_modules ${name})
endfunction()

# Sets the global property fairlead_objects: what a library of all modules is made of, their objects or the one made of them.
function(fairlead_objects)
  get_property(modules GLOBAL PROPERTY fairlead_modules)
  set(objects "")
  foreach(module IN LISTS modules)
    list(APPEND objects $<FILTER:$<TARGET_OBJECTS:fairlead_${module}>,EXCLUDE,[.]gch$>)  # GCC's precompiled headers
  endforeach()
  if(FAIRLEAD_WHOLE)
    set(whole ${PROJECT_BINARY_DIR}/fairlead_whole.o)
    separate_arguments(flags NATIVE_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_RELEASE}")
    add_custom_command(
      OUTPUT ${whole} DEPENDS ${objects} COMMAND_EXPAND_LISTS VERBATIM
      COMMAND ${CMAKE_CXX_COMPILER} ${flags} ${FAIRLEAD_HARDENED_FLAGS} ${FAIRLEAD_WHOLE_FLAGS} -fPIC -fno-semantic-interposition -r
              -flinker-output=nolto-rel -o ${whole} ${objects}
      COMMENT "Optimising all modules as one")
    set_source_files_properties(${whole} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
    add_custom_target(fairlead_whole DEPENDS ${whole})
    set(objects ${whole})
  endif()
  get_property(apart GLOBAL PROPERTY fairlead_apart)
  set_property(GLOBAL PROPERTY fairlead_objects ${objects} ${apart})
endfunction()

# Adds a library of all modules, and of what else is given.
function(fairlead_add_library name)
  get_property(objects GLOBAL PROPERTY fairlead_objects)
  add_library(${name} ${ARGN} ${objects})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  if(FAIRLEAD_WHOLE)
    add_dependencies(${name} fairlead_whole)
  endif()
endfunction()

# The library that users link: all modules in one, static or shared by BUILD_SHARED_LIBS.
function(fairlead_library)
  fairlead_objects()
  fairlead_add_library(fairlead)
  add_library(fairlead::fairlead ALIAS fairlead)
  set_target_properties(fairlead PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/*.hpp ${PROJECT_SOURCE_DIR}/include/*.h)
  target_sources(fairlead PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${headers})
  target_link_libraries(fairlead PRIVATE fmt::fmt PkgConfig::isal Threads::Threads)
  target_compile_features(fairlead PUBLIC cxx_std_23)
  if(FAIRLEAD_PUBLIC_NAMES)
    set(versions ${PROJECT_SOURCE_DIR}/cmake/exports.map)
    target_link_options(fairlead PRIVATE -Wl,--version-script=${versions})
    set_target_properties(fairlead PROPERTIES LINK_DEPENDS ${versions})
  endif()
endfunction()
