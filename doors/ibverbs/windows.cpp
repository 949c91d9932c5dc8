// Memory windows.
#include "doors/ibverbs/operations.hpp"

namespace fairlead::ibverbs {

ibv_mw* add_window(ibv_pd* pd, ibv_mw_type type) try {
  const Call call;
  Domain* domain = find(pd);
  if (domain == nullptr) return refuse(EINVAL);
  auto native = verbs::MemoryWindow::allocate(domain->native, static_cast<verbs::WindowType>(raw(type)));
  if (!native) return refuse(native.error());
  Window* window = table<Window>().create(domain->owner, pd, type, std::move(*native));
  return window != nullptr ? window : static_cast<ibv_mw*>(refuse(ENOMEM));
} catch (const std::exception&) {
  return thrown();
}

int remove_window(ibv_mw* abi) try {
  const Call call;
  Window* window = find(abi);
  if (window == nullptr) return fail(EINVAL);
  return table<Window>().destroy(window) ? 0 : fail(EINVAL);
} catch (const std::exception&) {
  return thrown();
}

int read_binding(ibv_mw* abi, std::uint32_t key, const ibv_mw_bind_info& from, verbs::WindowBinding& to) {
  const Window* window = find(abi);
  const Region* region = find(from.mr);
  if (window == nullptr || (region == nullptr && from.length != 0)) return EINVAL;
  to = {.window = window->native.rkey(),
        .key = key,
        .lkey = region != nullptr ? region->lkey : 0,
        .access = from.mw_access_flags,
        .addr = from.addr,
        .length = from.length};
  return 0;
}

int bind_window(ibv_qp* abi, ibv_mw* abi_window, ibv_mw_bind* wanted) try {
  const Call call;
  Pair* pair = find(abi);
  Window* window = find(abi_window);
  if (pair == nullptr || window == nullptr || wanted == nullptr || raw(window->type) != IBV_MW_TYPE_1)
    return fail(EINVAL);
  const std::lock_guard guard(window->binding);
  verbs::WindowBinding binding;
  const std::uint32_t key = verbs::next_key(window->rkey);
  if (const int error = read_binding(abi_window, key, wanted->bind_info, binding); error != 0) return fail(error);
  const verbs::SendRequest request{
      .id = wanted->wr_id, .opcode = verbs::SendOpcode::bind_window, .flags = wanted->send_flags, .binding = &binding};
  std::size_t taken = 0;
  if (const int error = pair->native->post_send({&request, 1}, taken); error != 0) return fail(error);
  window->rkey = key;
  return 0;
} catch (const std::exception&) {
  return thrown();
}

}  // namespace fairlead::ibverbs
