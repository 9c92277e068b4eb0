/* SPDX-License-Identifier: MIT */
#include "dwarf/eh_number.h"

bool eh_number_read(struct cursor *c, uint8_t encoding, uint8_t absptr_bytes, uint64_t *value)
{
	switch (encoding & EH_FORMAT) {
	case EH_ABSPTR:
		*value = absptr_bytes == 8 ? cursor_u64(c) : cursor_u32(c);
		break;
	case EH_ULEB128:
		*value = cursor_uleb(c);
		break;
	case EH_UDATA2:
		*value = cursor_u16(c);
		break;
	case EH_UDATA4:
		*value = cursor_u32(c);
		break;
	case EH_UDATA8:
	case EH_SDATA8:
		*value = cursor_u64(c);
		break;
	case EH_SLEB128:
		*value = (uint64_t)cursor_sleb(c);
		break;
	case EH_SDATA2:
		*value = (uint64_t)(int16_t)cursor_u16(c);
		break;
	case EH_SDATA4:
		*value = (uint64_t)(int32_t)cursor_u32(c);
		break;
	default:
		return false;
	}
	return !c->failed;
}
