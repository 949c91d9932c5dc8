# One folder, one module: every *.cpp of src/NAME belongs to the library, every *_test.cpp beside it to the
# test program NAME_test (cmake/programs.cmake). A new file needs no line here.
add_library(fairlead_settings INTERFACE)
target_compile_options(fairlead_settings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
                       $<$<CXX_COMPILER_ID:Clang>:-Wno-missing-designated-field-initializers>  # naming some is the point
                       -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=)  # a failed ENSURE names src/..., wherever it was built
target_include_directories(fairlead_settings INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
                           ${PROJECT_SOURCE_DIR})

# With CMAKE_VERIFY_INTERFACE_HEADER_SETS (preset clang) the target all_verify_interface_header_sets compiles each header alone.
file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.hpp)
target_sources(fairlead_settings INTERFACE FILE_SET internal TYPE HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${headers})

set_property(GLOBAL PROPERTY fairlead_modules "")

function(fairlead_module name)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  if(NOT sources)
    return()
  endif()
  add_library(fairlead_${name} OBJECT ${sources})
  target_link_libraries(fairlead_${name} PRIVATE fairlead_settings fmt::fmt PkgConfig::isal Boost::headers)
  fairlead_precompile(fairlead_${name} modules)
  fairlead_group(fairlead_${name})
  set_property(GLOBAL APPEND PROPERTY fairlead_modules ${name})
endfunction()

# The library that users link: all modules in one, static or shared by BUILD_SHARED_LIBS.
function(fairlead_library)
  get_property(modules GLOBAL PROPERTY fairlead_modules)
  set(objects "")
  foreach(module IN LISTS modules)
    list(APPEND objects $<TARGET_OBJECTS:fairlead_${module}>)
  endforeach()
  add_library(fairlead ${objects})
  add_library(fairlead::fairlead ALIAS fairlead)
  set_target_properties(fairlead PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/*.hpp)
  target_sources(fairlead PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${headers})
  target_link_libraries(fairlead PRIVATE fmt::fmt PkgConfig::isal Threads::Threads)
  target_compile_features(fairlead PUBLIC cxx_std_23)
endfunction()
