#pragma once
// Folders and files that nobody else has a hand in. What lies at a path may change between a look at it and its use, so
// everything is judged by descriptor: first opened, without following any link, then looked at.

#include <string>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"

namespace fairlead::base {

/// Opens a folder step by step, as a place only (O_PATH). No step is a link; each belongs to us, to root or to
/// whoever owns /, and is closed to others or sticky (as /tmp is): so nobody else can put another folder in its place.
Result<FileDescriptor> open_folder(const std::string& path);

/// Opens a file to append to, made with mode 0600 if it is not there: a plain file of our own with no second name, in
/// such a folder. Anything else there is refused without being written to, or waited for.
Result<FileDescriptor> open_to_append(const std::string& path);

/// A folder of ours with mode 0700.
struct PrivateFolder {
  std::string path;
  bool is_temporary = false;  // has a random name, and is for whoever made it alone
};

/// `name` in `parent`, made if it is not there. If somebody else was there first, a temporary one, and `complaint`
/// tells.
Result<PrivateFolder> private_folder(const std::string& parent, const std::string& name, std::string& complaint);

}  // namespace fairlead::base
