#pragma once
// A program file, opened once. So the file that is tried is the file that is executed, even if another one takes its
// path in between.

#include <sys/stat.h>

#include <string>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"

namespace fairlead::daemon {

class Program {
 public:
  /// Returns the absolute path by which this process was started, with its symbolic links. `given`: its argv[0];
  /// `is_successor`: the program before this one executed it, and gave the path as argv[0].
  static std::string own_path(const std::string& given, bool is_successor);
  /// Follows symbolic links now.
  static Result<Program> open(std::string path);

  const std::string& path() const { return path_; }
  /// Returns the name to execute. A script is executed by its path, because its interpreter opens it by name.
  std::string executable() const;
  /// Returns false if the file was written meanwhile, or if the path of a script names another file.
  bool is_unchanged() const;

 private:
  Program(std::string path, base::FileDescriptor file, const struct stat& facts, bool is_script)
      : path_(std::move(path)), file_(std::move(file)), facts_(facts), is_script_(is_script) {}

  std::string path_;
  base::FileDescriptor file_;
  struct stat facts_;
  bool is_script_;
};

}  // namespace fairlead::daemon
