#include <sys/mman.h>
#include <string.h>
#include <stdint.h>
#include <stdio.h>
extern char weir_region[];
__attribute__((visibility("default"))) void *region(void){return weir_region;}
