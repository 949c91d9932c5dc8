#pragma once
// Folders and files that no other user can tamper with. The object at a path may change between a check and its use. So
// every check is done on a descriptor: opened first, without following links, then checked.

#include <string>

#include <fairlead/error.hpp>

#include "base/file_descriptor.hpp"

namespace fairlead::base {

/// Opens a folder step by step with O_PATH. No step may be a link. Each has to belong to us, to root or to the owner of
/// /, and to be unwritable for others or sticky (like /tmp). So nobody else can replace a folder on the way.
Result<FileDescriptor> open_folder(const std::string& path);

/// Opens a file for appending, in such a folder, and creates it with mode 0600. It has to be a regular file of our own
/// with a single name. Anything else is refused without writing to it or waiting for it.
Result<FileDescriptor> open_to_append(const std::string& path);

/// A folder of our own with mode 0700.
struct PrivateFolder {
  std::string path;
  bool is_temporary = false;  // has a random name, and belongs to its maker alone
};

/// Returns the folder `name` in `parent`, and makes it if necessary. If somebody else has made it, returns a temporary
/// one, and `complaint` explains.
Result<PrivateFolder> private_folder(const std::string& parent, const std::string& name, std::string& complaint);

}  // namespace fairlead::base
