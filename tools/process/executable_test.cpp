#include "tools/process/executable.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <elf.h>
#include <unistd.h>

#include <cstddef>
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

TEST_F(ExecutableTest, AFolderIsNoProgram) {
  EXPECT_EQ(find_executable("/usr"), std::nullopt);
  EXPECT_EQ(find_executable("fd", "/proc/self"), std::nullopt);
}

TEST_F(ExecutableTest, MoreFoldersAreSearchedAfterPath) {
  EXPECT_EQ(find_executable("sh", "/no/such/folder"), find_executable("sh"));
  EXPECT_EQ(find_executable("exe", "/no/such/folder"), std::nullopt);
  EXPECT_EQ(find_executable("exe", "/no/such/folder:/proc/self"), "/proc/self/exe");
}

TEST_F(ExecutableTest, ADynamicProgramHasNoObstacle) {
  EXPECT_EQ(preload_obstacle("/proc/self/exe"), std::nullopt);
}

struct Program {
  Elf64_Ehdr header{};
  Elf64_Phdr part{};
};

/// Returns the headers of a program for this processor, with one part.
Program program_with(Elf64_Word type) {
  Program program;
  std::ifstream("/proc/self/exe", std::ios::binary)
      .read(reinterpret_cast<char*>(&program.header), sizeof program.header);
  program.header.e_phoff = offsetof(Program, part);
  program.header.e_phnum = 1;
  program.header.e_shnum = 0;
  program.part.p_type = type;
  program.part.p_filesz = 4;
  return program;
}

TEST_F(ExecutableTest, AStaticProgramIsNamedAsSuch) {
  Program program = program_with(PT_LOAD);
  write(&program, sizeof program);
  EXPECT_THAT(preload_obstacle(file_), Optional(HasSubstr("statically linked")));
  program = program_with(PT_INTERP);
  write(&program, sizeof program);
  EXPECT_EQ(preload_obstacle(file_), std::nullopt);
}

TEST_F(ExecutableTest, AProgramForAnotherProcessorIsNamedAsSuch) {
  Program program = program_with(PT_INTERP);
  program.header.e_ident[EI_CLASS] = ELFCLASS32;
  write(&program, sizeof program);
  EXPECT_THAT(preload_obstacle(file_), Optional(HasSubstr("32 bits")));
  program = program_with(PT_INTERP);
  program.header.e_machine = EM_S390;
  write(&program, sizeof program);
  EXPECT_THAT(preload_obstacle(file_), Optional(HasSubstr("another processor")));
}

TEST_F(ExecutableTest, AProgramWithMoreRightsIsNamedAsSuch) {
  const Program program = program_with(PT_INTERP);
  write(&program, sizeof program);
  std::filesystem::permissions(file_, std::filesystem::perms(04755));
  EXPECT_EQ(preload_obstacle(file_), std::nullopt) << "our own user's";
  constexpr uid_t kAnother = 12345;
  if (::chown(file_.c_str(), kAnother, kAnother) != 0) return;  // only root may give a file away
  std::filesystem::permissions(file_, std::filesystem::perms(04755));
  EXPECT_THAT(preload_obstacle(file_), Optional(HasSubstr("setuid")));
}

TEST_F(ExecutableTest, OfAScriptTheInterpreterIsChecked) {
  const Program program = program_with(PT_LOAD);
  write(&program, sizeof program);
  const std::string script = file_ + ".script";
  std::ofstream(script) << "#! " << file_ << " -x\n";
  EXPECT_EQ(program_of(script), file_);
  EXPECT_THAT(preload_obstacle(script), Optional(HasSubstr("statically linked")));
  std::ofstream(script) << "#!" << script;
  EXPECT_EQ(program_of(script), script) << "a circle";
  std::filesystem::remove(script);
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
