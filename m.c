extern void*region(void); extern int puts(const char*); extern int printf(const char*,...);
int main(void){printf("%p\n",region()); char b[100]; extern int system(const char*); return system("grep -n libr /proc/$PPID/maps; grep VmSize /proc/$PPID/status");}
