#include "tools/executable.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <elf.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace fairlead::tools {
namespace {

using testing::HasSubstr;
using testing::Optional;

class ExecutableTest : public testing::Test {
 protected:
  ~ExecutableTest() override { std::filesystem::remove(file_); }

  void write(const void* bytes, std::size_t length) {
    std::ofstream(file_, std::ios::binary).write(static_cast<const char*>(bytes), static_cast<std::streamsize>(length));
  }

  std::string file_ = testing::TempDir() + "executable_test." + std::to_string(::getpid());
};

TEST_F(ExecutableTest, WordsAreLookedForAsShellsDo) {
  EXPECT_THAT(find_executable("sh"), Optional(HasSubstr("/sh")));
  EXPECT_EQ(find_executable("/bin/sh"), "/bin/sh");
  EXPECT_EQ(find_executable("no-such-program-anywhere"), std::nullopt);
  EXPECT_EQ(find_executable("/no/such/program"), std::nullopt);
}

TEST_F(ExecutableTest, ADynamicProgramHasNoObstacle) {
  EXPECT_EQ(preload_obstacle("/proc/self/exe"), std::nullopt);
}

TEST_F(ExecutableTest, AStaticProgramIsNamedAsSuch) {
  struct {
    Elf64_Ehdr header{};
    Elf64_Phdr part{};
  } program;
  std::memcpy(program.header.e_ident, ELFMAG, SELFMAG);
  program.header.e_ident[EI_CLASS] = ELFCLASS64;
  program.header.e_phoff = sizeof program.header;
  program.header.e_phentsize = sizeof program.part;
  program.header.e_phnum = 1;
  program.part.p_type = PT_LOAD;
  write(&program, sizeof program);
  EXPECT_THAT(preload_obstacle(file_), Optional(HasSubstr("statically linked")));
  program.part.p_type = PT_INTERP;
  write(&program, sizeof program);
  EXPECT_EQ(preload_obstacle(file_), std::nullopt);
}

TEST_F(ExecutableTest, CutAndForeignFilesAreNoObstacle) {
  write(ELFMAG, SELFMAG);
  EXPECT_EQ(preload_obstacle(file_), std::nullopt);
  write("#!/bin/sh\n", 10);
  EXPECT_EQ(preload_obstacle(file_), std::nullopt);
  EXPECT_EQ(preload_obstacle("/no/such/file"), std::nullopt);
}

}  // namespace
}  // namespace fairlead::tools
